"""Animals that Rigify generates: pinned paws and hooves stay in place on IK, in drags and bakes.

They have no faces, which have half of the bones and none of the limbs, and which Rigify takes 12 seconds to generate.
"""

from itertools import pairwise

import bpy
import numpy as np
import pytest
from support.rigify import open_set_up
from support.scenes import empty_at
from support.takes import curves

from fabrik_addon.blender.bake.bake import bake
from fabrik_addon.blender.control.mechanism import Mechanism
from fabrik_addon.blender.control.posed_rig import posed_rig
from fabrik_addon.blender.control.switches import with_linked_values
from fabrik_addon.blender.control.writer import evaluate
from fabrik_addon.blender.posing.drag import begin_drag
from fabrik_addon.blender.rig.armature import bone_matrices, property_name, rest_matrices
from fabrik_addon.blender.rig.pose_writer import write_switches
from fabrik_addon.blender.settings.control import solved_bone
from fabrik_addon.core import forward_kinematics
from fabrik_addon.core.rotations import product, quaternion_from_rotation_vector

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]

# The IK controls of the hind and the front limbs, and how far the animal is dragged, in meters.
ANIMALS = {
    "wolf": (("foot_ik", "front_foot_ik"), 1.0),
    "cat": (("foot_ik", "hand_ik"), 0.35),
    "horse": (("hind_foot_ik", "forefoot_ik"), 2.0),
    "bird": (("foot_ik",), 0.25),
}
PAWS = ("wolf", "cat", "horse")
# Meters: the allowed error. Measured: 0.003 mm in drags, 0.03 mm in bakes.
CLOSE = 1e-3
DOWN = np.array((0.02, 0.06, -0.1))


def controls_of(kind):
    return [f"{name}.{side}" for name in ANIMALS[kind][0] for side in "LR"]


def opened(kind):
    return open_set_up(f"Animals.{kind}{' without face' if kind in {'wolf', 'cat'} else ''}")


def pinned(kind, *, but=""):
    """The animal with its paws pinned, and the matrices of the pinned bones."""
    rig = opened(kind)
    bpy.ops.fabrik.pin(bones=",".join(name for name in controls_of(kind) if name != but))
    bpy.context.view_layer.update()
    return rig, {pin.bone: np.array(rig.pose.bones[pin.bone].matrix) for pin in rig.fabrik.effectors}


def assert_on_ik(rig):
    assert {row.name: rig.path_resolve(row.name) for row in rig.fabrik.control.switches} == {
        row.name: row.ik for row in rig.fabrik.control.switches
    }


def assert_held(rig, held):
    for bone, matrix in held.items():
        assert np.array(rig.pose.bones[bone].matrix) == pytest.approx(matrix, abs=CLOSE), bone


@pytest.mark.parametrize("kind", PAWS)
def test_each_limb_is_placed_by_paw_and_heel_and_keeps_its_length(kind):
    kept = opened(kind).fabrik.control
    goes_by = {row.goes_by for row in kept.carriers} - {""}
    heels = {name.replace("_ik.", "_heel_ik.") for name in controls_of(kind)}
    assert goes_by == {*controls_of(kind), *heels}
    assert [row.name for row in kept.switches if row.stretches] == []


@pytest.mark.parametrize("control", ["torso", "chest", "hind", "front"])
@pytest.mark.parametrize("kind", PAWS)
def test_pinned_paws_stay_on_ik_while_the_body_or_another_paw_is_dragged(kind, control):
    names, size = ANIMALS[kind]
    control = {"hind": f"{names[0]}.L", "front": f"{names[1]}.L"}.get(control, control)
    rig, held = pinned(kind, but=control)
    shift = size * {"torso": DOWN, "chest": np.array((0.0, -0.02, -0.05))}.get(control, np.array((0.02, -0.1, 0.09)))
    drag = begin_drag(bpy.context, rig, control)
    for share in np.linspace(0.0, 1.0, 6)[1:]:
        drag.step(drag.start + share * shift)
    drag.finish(bpy.context)
    bpy.context.view_layer.update()
    assert drag.left_alone == []
    tail = rig.pose.bones[rig.fabrik.control.controls[control].stands_for].tail
    assert np.array(tail) == pytest.approx(drag.start + shift, abs=CLOSE)
    assert_on_ik(rig)
    assert_held(rig, held)


def keyed(kind, rng):
    """An animal with keys for all its controls on three frames; every other limb is on FK."""
    rig = opened(kind)
    setup, size = rig.fabrik.control, ANIMALS[kind][1]
    switches = {row.name: row.fk if number % 2 else row.ik for number, row in enumerate(setup.switches)}
    write_switches(rig, with_linked_values(setup, switches))
    # A horse's toes rotate away from the IK controls.
    by_ik = {row.name for row in setup.controls if row.limb and "toe_ik" not in row.name}
    for name in sorted({*by_ik, *(row.control for row in setup.carriers if row.control), "torso"}):
        bone = rig.pose.bones[name]
        hinged = any(row.hinge for row in setup.carriers if row.control == name)
        for frame in (1, 20, 40):
            turn = 0.03 * rng.normal(size=3) * ~np.array(bone.lock_rotation) * (not hinged)
            if bone.rotation_mode == "QUATERNION":
                bone.rotation_quaternion = quaternion_from_rotation_vector(turn)
            else:
                bone.rotation_euler = turn
            bone.keyframe_insert(property_name(bone.rotation_mode), frame=frame)
            if name in by_ik or name == "torso":
                bone.location = 0.01 * size * rng.normal(size=3) * ~np.array(bone.lock_location)
                bone.location.z -= 0.06 * size * (name == "torso")
                bone.keyframe_insert("location", frame=frame)
    return rig


def channels_of(rig, names):
    paths = ("location", "rotation_quaternion", "rotation_euler", "scale")
    return {name: [np.array(getattr(rig.pose.bones[name], path)).tobytes() for path in paths] for name in names}


def body(rig):
    bpy.context.view_layer.update()
    return np.array([rig.pose.bones[row.name].matrix for row in rig.fabrik.control.carriers])


# A hind paw, a front paw or wing, and the hips, with automatic keys or without, at a key or between keys.
DRAGGED = {"wolf": "front_foot_ik.R", "cat": "hand_ik.R", "horse": "forefoot_ik.R", "bird": "DEF-Wing.002.L"}


@pytest.mark.parametrize(
    ("kind", "part", "auto_key", "frame"),
    [
        ("wolf", "hind", True, 30),
        ("wolf", "torso", False, 31),
        ("cat", "front", True, 20),
        ("cat", "torso", True, 30),
        ("horse", "hind", False, 20),
        ("horse", "front", True, 30),
        ("bird", "hind", True, 20),
        ("bird", "front", False, 31),
    ],
)
def test_a_drag_of_a_keyed_animal_moves_and_keys_only_what_it_poses(kind, part, auto_key, frame):
    """Limbs stay on IK or FK, controls at what they control, and the other keys keep their poses."""
    rig = keyed(kind, np.random.default_rng(5))
    setup, size, scene = rig.fabrik.control, ANIMALS[kind][1], bpy.context.scene
    scene.tool_settings.use_keyframe_insert_auto = auto_key
    before = {}
    for each in {1, 20, 40} - {frame}:
        scene.frame_set(each)
        before[each] = body(rig)
    scene.frame_set(frame)
    bone = solved_bone(rig, {"hind": controls_of(kind)[0], "front": DRAGGED[kind]}.get(part, "torso"))
    switches = {row.name: rig.path_resolve(row.name) for row in setup.switches}
    on_fk = switches.get(setup.carriers[bone].switch) == 1.0
    control = setup.carriers[bone].control if on_fk or part == "front" else posed_rig(rig).shown(bone)
    control = "torso" if part == "torso" else control
    others = {row.control for row in setup.carriers if row.switch not in {"", setup.carriers[bone].switch}}
    others |= {row.name for row in setup.controls if row.limb not in {"", setup.carriers[bone].switch}}
    untouched, whole, keys = channels_of(rig, others), body(rig), {p: c.tobytes() for p, c in curves(rig).items()}
    ends = [row for row in setup.carriers if row.goes_by in controls_of(kind) and switches[row.switch] == 0.0]
    assert ends

    def apart():
        """Distances of the limbs on IK from their controls."""
        rests, there = rig.data.bones, []
        for row in ends:
            rest = rests[row.goes_by].matrix_local.inverted() @ rests[row.name].matrix_local
            there.append((rig.pose.bones[row.goes_by].matrix @ rest).translation - rig.pose.bones[row.name].head)
        return np.linalg.norm(there, axis=1)

    assert apart().max() < CLOSE * size
    shift = size * np.array((0.01, 0.02, -0.04) if part == "torso" else (0.03, -0.08, 0.08))
    drag = begin_drag(bpy.context, rig, control)
    drag.step(drag.start + shift)
    drag.cancel()
    assert np.array_equal(body(rig), whole)
    drag = begin_drag(bpy.context, rig, control)
    for share in (0.5, 1.0):
        drag.step(drag.start + share * shift, settled=share == 1.0)
    drag.finish(bpy.context)
    posed = body(rig)
    assert drag.left_alone == []
    assert np.array(rig.pose.bones[bone].tail) == pytest.approx(drag.start + shift, abs=CLOSE * size)
    assert apart().max() < CLOSE * size
    assert channels_of(rig, others) == untouched
    assert {row.name: rig.path_resolve(row.name) for row in setup.switches} == switches
    assert ({p: c.tobytes() for p, c in curves(rig).items()} == keys) is not auto_key
    for each, matrices in before.items() if auto_key else ():
        scene.frame_set(each)
        assert body(rig)[:, :3, 3] == pytest.approx(matrices[:, :3, 3], abs=1e-4 * size), each
    if auto_key:
        scene.frame_set(frame)
        assert body(rig)[:, :3, 3] == pytest.approx(posed[:, :3, 3], abs=1e-4 * size)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("kind", PAWS)
def test_a_chest_on_a_fixed_pelvis_is_as_near_as_its_spine_is_long(kind, forward):
    """Without pins the pelvis stays in place, and the spine cannot become longer."""
    rig = opened(kind)
    carriers, bone = rig.fabrik.control.carriers, rig.fabrik.control.controls["chest"].stands_for
    ends = [rig.pose.bones[bone].tail.copy()]
    while bone:
        ends.append(rig.pose.bones[bone].head.copy())
        bone = carriers[bone].parent
    length = sum((one - two).length for one, two in pairwise(ends))
    drag = begin_drag(bpy.context, rig, "chest")
    shift = 0.08 * ANIMALS[kind][1] * np.array((0.0, -1.0, 0.0) if forward else (0.6, 0.0, -0.8))
    result = drag.step(drag.start + shift, settled=True)
    least = max(0.0, float(np.linalg.norm(drag.start + shift - ends[-1])) - length)
    assert (least > 0.01) == forward
    assert result.error == pytest.approx(least, abs=1e-4)
    drag.cancel()


@pytest.mark.parametrize("kind", PAWS)
def test_all_legs_bend_equally_as_the_torso_is_lowered(kind):
    rig, _ = pinned(kind)

    def legs():
        """Pairs of positions: of each leg's first bone and of its paw."""
        bpy.context.view_layer.update()
        ends = [row for row in rig.fabrik.control.carriers if row.goes_by in controls_of(kind)]
        firsts = [next(row.name for row in rig.fabrik.control.carriers if row.switch == end.switch) for end in ends]
        return np.array(
            [[rig.pose.bones[each].head for each in pair] for pair in zip(firsts, [e.name for e in ends], strict=True)]
        )

    before = legs()
    shift = ANIMALS[kind][1] * np.array((0.0, 0.0, -0.1))
    drag = begin_drag(bpy.context, rig, "torso")
    for share in np.linspace(0.0, 1.0, 6)[1:]:
        drag.step(drag.start + share * shift)
    drag.finish(bpy.context)
    after = legs()
    shorter = 1.0 - np.linalg.norm(np.diff(after, axis=1), axis=2) / np.linalg.norm(np.diff(before, axis=1), axis=2)
    assert shorter.min() > 0.7 * shorter.max() > 0.07
    # Hips and shoulders go down equally.
    assert (after - before)[:, 0, 2] == pytest.approx(shift[2], rel=0.2)


@pytest.mark.parametrize("kind", PAWS)
def test_a_bake_leaves_pinned_paws_on_ik(kind):
    rig, held = pinned(kind)
    start = np.array(rig.pose.bones[rig.fabrik.control.controls["torso"].stands_for].tail)
    target = empty_at(start)
    for frame, share in ((1, 0.0), (6, 1.0), (10, 0.4)):
        target.location = start + share * ANIMALS[kind][1] * DOWN
        target.keyframe_insert("location", frame=frame)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.fabrik.add_effector(bone="torso", target=target.name)
    assert bake(bpy.context, rig, frame_start=1, frame_end=10).report.doubts == ()
    for frame in range(1, 11):
        bpy.context.scene.frame_set(frame)
        assert_on_ik(rig)
        assert_held(rig, held)


@pytest.mark.parametrize("kind", PAWS)
def test_the_bones_between_the_controls_are_computed_as_blender_does(kind):
    """The parents of heels: IK bends and stretches two chains to the paw, or a bone tracks such a chain's joint."""
    rig, rng = opened(kind), np.random.default_rng(1)
    setup, bones, size = rig.fabrik.control, rig.pose.bones, ANIMALS[kind][1]
    write_switches(rig, with_linked_values(setup, {row.name: row.ik for row in setup.switches}))
    controls = [row.name for row in setup.controls if row.limb and "heel" not in row.name]
    heels = [bones[name.replace("_ik.", "_heel_ik.")].parent for name in controls_of(kind)]
    bones["torso"].location.z = -0.05 * size
    for name in controls:
        if name in controls_of(kind):
            bones[name].location = 0.08 * size * rng.normal(size=3)
            bones[name].rotation_quaternion = quaternion_from_rotation_vector(0.2 * rng.normal(size=3))
        elif bones[name].rotation_mode == "ZXY":
            bones[name].rotation_euler.y = 0.2 * rng.normal()
    bpy.context.view_layer.update()
    mechanism = Mechanism(rig, {name: bone_matrices(rig, [name]) for name in controls})
    rests = rest_matrices(rig, [bone.name for bone in heels])
    posed = bone_matrices(rig, [bone.name for bone in heels])
    assert np.abs(posed - rests).max() > 0.05
    assert np.concatenate([mechanism.matrices(bone) for bone in heels]) == pytest.approx(posed, abs=2e-5)


def tail_of(rig):
    """The solved bones of an animal's tail, from its root to its tip; the wolf's controls are named spine."""
    names = ("tail.", "spine.") if "spine.003" in rig.pose.bones else ("tail.",)
    rows = [row for row in rig.fabrik.control.carriers if row.control.startswith(names) or row.control == "spine"]
    return [row.name for row in rows]


@pytest.mark.parametrize("kind", PAWS)
def test_each_control_of_a_curling_tail_moves_its_own_bone(kind):
    """Rigify adds the rotation of each control of a tail to the next one, so that the tail curls."""
    rig = opened(kind)
    setup, bones = rig.fabrik.control, tail_of(rig)
    assert len(bones) >= 4
    assert [setup.carriers[name].parent for name in bones[1:]] == bones[:-1]
    masters = [bone.name for bone in rig.pose.bones if bone.name.startswith(("tail_master", "spine_master"))]
    assert [setup.controls[name].stands_for for name in masters] == bones[:1]
    copies = [each for bone in rig.pose.bones for each in bone.constraints if each.type == "COPY_ROTATION"]
    assert not [each for each in copies if each.mute]


@pytest.mark.parametrize("kind", PAWS)
def test_a_dragged_tail_leaves_the_body_in_place(kind):
    rig, size = opened(kind), ANIMALS[kind][1]
    carriers, bones = rig.fabrik.control.carriers, tail_of(rig)
    rig.pose.bones[carriers[bones[1]].control].rotation_quaternion = (0.98, 0.15, 0.1, 0.05)
    bpy.context.view_layer.update()
    before = {row.name: np.array(rig.pose.bones[row.name].matrix) for row in carriers if row.name not in bones}
    drag = begin_drag(bpy.context, rig, carriers[bones[-1]].control)
    shift = size * np.array((0.03, -0.04, 0.05))
    for share in np.linspace(0.0, 1.0, 5)[1:]:
        drag.step(drag.start + share * shift, settled=True)
        bpy.context.view_layer.update()
        assert np.array(rig.pose.bones[bones[-1]].tail) == pytest.approx(drag.start + share * shift, abs=CLOSE)
    drag.finish(bpy.context)
    bpy.context.view_layer.update()
    assert drag.left_alone == []
    assert np.array(rig.pose.bones[bones[-1]].tail) == pytest.approx(drag.start + shift, abs=CLOSE)
    for name, matrix in before.items():
        assert np.array(rig.pose.bones[name].matrix) == pytest.approx(matrix, abs=0.01 * size), name


@pytest.mark.parametrize("kind", PAWS)
def test_controls_of_bones_that_are_not_posed_keep_their_channels(kind):
    """A horse's tail does not follow its pelvis; it stays as it is, instead of being rotated with the pelvis."""
    rig = opened(kind)
    controls = [rig.pose.bones[rig.fabrik.control.carriers[name].control] for name in tail_of(rig)]
    controls[0].rotation_quaternion = (0.98, 0.15, 0.1, 0.05)
    before = [tuple(control.rotation_quaternion) for control in controls]
    drag = begin_drag(bpy.context, rig, "torso")
    drag.step(drag.start + ANIMALS[kind][1] * DOWN, turn=(0.1, 0.1, 0.2), settled=True)
    drag.finish(bpy.context)
    assert drag.left_alone == []
    assert [tuple(control.rotation_quaternion) for control in controls] == before


def test_a_toe_with_one_control_for_fk_and_ik_is_posed_on_ik():
    """A bird's leg on IK has no other control for its toe."""
    rig = open_set_up("Animals.bird")
    drag = begin_drag(bpy.context, rig, "t_thumb.002.R")
    shift = np.array((0.01, 0.0, 0.01))
    assert drag.step(drag.start + shift, settled=True).error < 1e-5
    drag.finish(bpy.context)
    bpy.context.view_layer.update()
    assert drag.left_alone == []
    assert np.array(rig.pose.bones["DEF-t_thumb.002.R"].tail) == pytest.approx(drag.start + shift, abs=1e-4)
    assert_on_ik(rig)


def test_paws_are_placed_although_their_heels_first_turn_the_wrong_way():
    """Fixed: the foot was put back each time, because the heel's error grew. Paws were up to a tenth of a leg away."""
    horse = open_set_up("Animals.horse")
    rows = horse.fabrik.control.carriers
    tree = posed_rig(horse).trees()[0]
    names, rng = tree.skeleton.names, np.random.default_rng(1)
    for _ in range(5):
        turns = 0.12 * rng.normal(size=(len(names), 3)) * [[bool(rows[name].switch)] for name in names]
        for bone, hinge in enumerate(rows[name].hinge for name in names):
            if hinge:
                turns[bone] = 0.15 * rng.normal() * (np.array(tuple("XYZ")) == hinge)
        rotations = product(tree.rotations, quaternion_from_rotation_vector(turns))
        writer = posed_rig(horse).writer(
            bpy.context.view_layer.update, tree.skeleton, range(len(names)), moves_root=True
        )
        writer.write(rotations, tree.root_location)
        evaluate(bpy.context.view_layer.update, list(writer.limbs.values()))
        wanted = forward_kinematics(tree.skeleton, rotations, tree.root_location)
        for limb in writer.limbs.values():
            rows_of_limb = [names.index(bone) for bone in limb.bones]
            assert limb.errors(wanted[rows_of_limb])[0] < 1.0, limb.bones
