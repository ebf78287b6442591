"""Dragging, solving and live posing through the controls of a generated Rigify human."""

import bpy
import numpy as np
import pytest
from mathutils import Quaternion
from support import scenes
from support.control_rigs import assert_same, bend_as_on_ik
from support.rigify import open_set_up
from support.takes import curves

from fabrik_addon.blender.posing.drag import begin_drag
from fabrik_addon.blender.posing.live import pause
from fabrik_addon.blender.posing.solve import solve_frame

pytestmark = pytest.mark.usefixtures("clean_scene")

HUMAN = "Basic.basic_human"
# Armature units: the allowed error of the evaluated body.
PLACE = 1e-4


@pytest.fixture
def human():
    return open_set_up(HUMAN)


def channels(rig):
    """The channels of all bones, and the switches."""
    names = ("location", "rotation_quaternion", "rotation_euler", "scale")
    held = {bone.name: [tuple(getattr(bone, name)) for name in names] for bone in rig.pose.bones}
    own = {
        bone.name: [(key, value) for key, value in sorted(bone.items()) if isinstance(value, (int, float))]
        + [("IK Stretch", bone.ik_stretch)]
        for bone in rig.pose.bones
    }
    return held, own


def matrix(rig, bone):
    return np.array(rig.pose.bones[bone].matrix)


def stands_for(rig, control):
    return rig.fabrik.control.controls[control].stands_for


@pytest.mark.one_blender
@pytest.mark.parametrize(
    ("control", "shift"),
    [
        ("hand_ik.L", (0.1, -0.5, 0.2)),
        ("torso", (0.05, 0.0, -0.2)),
        ("head", (0.05, -0.15, -0.05)),
        ("chest", (0.0, -0.15, -0.05)),
        ("hand_fk.R", (0.0, -0.4, 0.3)),
    ],
)
def test_a_control_is_dragged_and_pinned_feet_stay(human, control, shift):
    bpy.ops.fabrik.pin(bones="foot_ik.L,foot_ik.R")
    bend_as_on_ik(human, "shin")
    bend_as_on_ik(human, "forearm")
    feet = {bone: matrix(human, bone) for bone in (pin.bone for pin in human.fabrik.effectors)}
    assert set(feet) == {stands_for(human, "foot_ik.L"), stands_for(human, "foot_ik.R")}
    before, kept = channels(human), human.fabrik.control
    bone = stands_for(human, control)
    ends = {}
    for kept.limbs in ("AUTO", "FK"):
        drag = begin_drag(bpy.context, human, control)
        for share in (0.25, 0.5, 0.75, 1.0):
            drag.step(drag.start + share * np.array(shift))
        drag.finish(bpy.context)
        assert drag.left_alone == []
        assert np.array(human.pose.bones[bone].tail) == pytest.approx(drag.start + shift, abs=PLACE)
        for foot, wanted in feet.items():
            assert matrix(human, foot) == pytest.approx(wanted, abs=PLACE)
        after = channels(human)[0]
        placing = {row.name for row in kept.controls if row.limb and kept.limbs == "AUTO"}
        controls = {row.control for row in kept.carriers} | {kept.place} | placing
        assert {name for name in before[0] if after[name] != before[0][name]} <= controls
        on_fk = {row.name for row in kept.switches if human.path_resolve(row.name) == row.fk}
        led = {kept.carriers[each].switch for each in (bone, *feet)} - {""}
        assert on_fk == (led if kept.limbs == "FK" else set())
        # The rig's IK, which stretches limbs, decides their lengths, and so the positions of elbows and knees.
        led -= {""}
        ends[kept.limbs] = np.array([matrix(human, each.name) for each in kept.carriers if each.switch not in led])
        drag.cancel()
        assert channels(human) == before
    assert_same(ends["AUTO"], ends["FK"])


@pytest.mark.one_blender
@pytest.mark.parametrize("limbs", ["AUTO", "FK"])
@pytest.mark.parametrize(
    ("control", "lower", "shift"),
    [("thigh_ik.L", "ORG-shin.L", (0.0, -0.4, 0.4)), ("upper_arm_ik.L", "ORG-forearm.L", (0.05, 0.0, 0.3))],
)
def test_the_lower_limb_hangs_below_a_dragged_knee_or_elbow(human, control, lower, shift, limbs):
    """Fixed: it stayed in line with the upper limb, like a stick."""
    bpy.ops.fabrik.pin(bones="foot_ik.R")
    human.fabrik.control.limbs = limbs
    drag = begin_drag(bpy.context, human, control)
    for share in np.linspace(0.1, 1.0, 10):
        drag.step(drag.start + share * np.array(shift))
    drag.finish(bpy.context)
    bpy.context.view_layer.update()
    assert drag.left_alone == []
    assert np.array(human.pose.bones[stands_for(human, control)].tail) == pytest.approx(drag.start + shift, abs=PLACE)
    assert matrix(human, lower)[2, 1] < -np.cos(np.radians(30.0)) * human.pose.bones[lower].matrix.to_scale()[1]


@pytest.mark.one_blender
def test_a_cats_paw_is_dragged_its_spine_follows_and_the_other_paws_stay():
    cat = open_set_up("Animals.cat without face")
    cat.fabrik.control.limbs = "FK"
    bpy.ops.fabrik.pin(bones="hand_ik.R,foot_ik.L,foot_ik.R")
    spine = [row.name for row in cat.fabrik.control.carriers if row.control.startswith("spine_fk")]
    held = [pin.bone for pin in cat.fabrik.effectors]
    before = {bone: matrix(cat, bone) for bone in (*spine, *held)}
    drag = begin_drag(bpy.context, cat, "hand_ik.L")
    shift = np.array((0.0, -0.15, 0.12))
    for share in (0.25, 0.5, 0.75, 1.0):
        drag.step(drag.start + share * shift)
    drag.finish(bpy.context)
    assert drag.left_alone == []
    assert np.array(cat.pose.bones[stands_for(cat, "hand_ik.L")].tail) == pytest.approx(drag.start + shift, abs=PLACE)
    for bone in held:
        assert matrix(cat, bone) == pytest.approx(before[bone], abs=PLACE)
    assert len(spine) == 4
    turned = [np.abs(matrix(cat, bone)[:3, :3] - before[bone][:3, :3]).max() for bone in spine]
    assert max(turned) > np.radians(1.5)


def led(rig, shift=(0.0, -0.3, 0.1)):
    """A drag of the left hand's control, after one step."""
    drag = begin_drag(bpy.context, rig, "hand_ik.L")
    drag.step(drag.start + np.array(shift))
    return drag


def torso_aside(rig):
    """The channels of all bones after the torso is moved."""
    rig.pose.bones["torso"].location = (0.1, 0.0, -0.1)
    bpy.context.view_layer.update()
    return channels(rig)


@pytest.mark.one_blender
def test_most_steps_evaluate_the_rig_once_while_ik_places_a_foot(human):
    """Fixed: it was 30 times in 14 steps, because controls were only placed after the body had moved."""
    bpy.ops.fabrik.pin(bones="foot_ik.R")
    drag, evaluated = begin_drag(bpy.context, human, "foot_ik.L"), []
    # The first step also finds out which controls act as poles.
    drag.step(drag.start + np.array((0.0, -0.01, 0.01)))

    def count(*_arguments):
        evaluated.append(1)

    bpy.app.handlers.depsgraph_update_post.append(count)
    try:
        for step in range(2, 16):
            drag.step(drag.start + step * np.array((0.0, -0.01, 0.01)))
    finally:
        bpy.app.handlers.depsgraph_update_post.remove(count)
    assert 14 <= len(evaluated) < 25


def test_a_canceled_drag_changes_nothing(human):
    before, drag = torso_aside(human), led(human)
    assert channels(human) != before
    drag.cancel()
    assert channels(human) == before


def test_a_drag_that_comes_back_to_its_start_changes_nothing(human):
    before, drag = torso_aside(human), led(human)
    drag.step(drag.start)
    assert drag.finish(bpy.context) == 0
    assert channels(human) == before


def test_the_pose_does_not_jump_as_limbs_switch_from_ik_to_fk(human):
    human.fabrik.control.limbs = "FK"
    human.pose.bones["torso"].location = (0.05, 0.0, -0.15)
    bpy.context.view_layer.update()
    body = [row.name for row in human.fabrik.control.carriers]
    before = {bone: matrix(human, bone) for bone in body}
    led(human, (0.0, -0.001, 0.0)).finish(bpy.context)
    on_fk = [row.name for row in human.fabrik.control.switches if human.path_resolve(row.name) == row.fk]
    assert on_fk == ['pose.bones["upper_arm_parent.L"]["IK_FK"]']
    for bone in body:
        # On IK the rig makes the upper arm 2.5 % shorter, which FK does not.
        turned, was = (
            each[:3, :3] / np.linalg.norm(each[:3, :3], axis=0) for each in (matrix(human, bone), before[bone])
        )
        assert turned == pytest.approx(was, abs=0.05), bone
        assert matrix(human, bone)[:3, 3] == pytest.approx(before[bone][:3, 3], abs=0.03), bone


@pytest.mark.usefixtures("preferences")
@pytest.mark.parametrize("limbs", ["AUTO", "FK"])
def test_auto_keying_keys_only_controls_and_switches(human, limbs):
    human.fabrik.control.limbs = limbs
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    drag = led(human)
    drag.finish(bpy.context)
    bones = {path.split('"')[1] for path, _ in curves(human)}
    arm = {"hand_ik.L", "upper_arm_ik.L"} if limbs == "AUTO" else {"upper_arm_fk.L", "forearm_fk.L"}
    assert arm <= bones
    trunk = {row.control for row in human.fabrik.control.carriers if not row.switch} | {"torso"}
    switch = {"upper_arm_parent.L", "hand_fk.L"} if limbs == "FK" else set()
    assert bones <= trunk | arm | switch


@pytest.mark.usefixtures("preferences")
def test_other_frames_do_not_change_if_a_limb_is_switched_to_fk(human):
    human.fabrik.control.limbs = "FK"
    hand = human.pose.bones["hand_ik.L"]
    for frame, place in ((1, (0.0, 0.0, 0.0)), (10, (0.0, -0.2, 0.2)), (40, (0.0, -0.1, 0.1))):
        hand.location = place
        hand.keyframe_insert("location", frame=frame)
    scene = bpy.context.scene
    frames = (1, 5, 10, 40, 50)
    before = {}
    for frame in (*frames, 20):
        scene.frame_set(frame)
        before[frame] = matrix(human, "ORG-hand.L")
    scene.tool_settings.use_keyframe_insert_auto = True
    led(human).finish(bpy.context)
    switch = human.pose.bones["upper_arm_parent.L"]
    assert switch["IK_FK"] == 1.0
    for frame in frames:
        scene.frame_set(frame)
        assert switch["IK_FK"] == 0.0
        assert matrix(human, "ORG-hand.L") == pytest.approx(before[frame], abs=1e-5), frame
    scene.frame_set(20)
    assert np.abs(matrix(human, "ORG-hand.L") - before[20]).max() > 0.1


def test_switches_get_no_keys_where_controls_get_none(human, preferences):
    preferences.use_keyframe_insert_available = True
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    drag = led(human)
    drag.finish(bpy.context)
    assert human.animation_data.action is None
    assert "Only Insert Available" in drag.left_alone[-1]


def test_solving_writes_controls(human):
    target = scenes.empty_at((0.6, -0.5, 1.3))
    bpy.ops.fabrik.add_effector(bone="hand_ik.L", target=target.name)
    bpy.ops.fabrik.solve()
    bpy.context.view_layer.update()
    tail = human.pose.bones[stands_for(human, "hand_ik.L")].tail
    assert np.array(tail) == pytest.approx(np.array(target.location), abs=2e-4)


def test_solving_names_a_control_that_cannot_follow(human):
    for path in [row.name for row in human.fabrik.control.switches if "upper_arm" in row.name]:
        human.pose.bones[path.split('"')[1]]["IK_FK"] = human.fabrik.control.switches[path].fk
    human.update_tag()
    stop = human.pose.bones["forearm_fk.L"].constraints.new("LIMIT_ROTATION")
    stop.owner_space, stop.use_limit_x, stop.use_limit_y, stop.use_limit_z = "LOCAL", True, True, True
    target = scenes.empty_at((0.3, -0.4, 1.3))
    bpy.context.view_layer.objects.active = human
    bpy.ops.fabrik.add_effector(bone="hand_fk.L", target=target.name)
    left = solve_frame(bpy.context, human).left_alone
    assert [line for line in left if "is off by" in line and "'forearm_fk.L' can't move it there" in line], left


def test_key_pose_keys_controls(human):
    target = scenes.empty_at((0.6, -0.5, 1.3))
    bpy.ops.fabrik.add_effector(bone="hand_ik.L", target=target.name)
    bpy.ops.fabrik.solve()
    bpy.ops.fabrik.key_pose()
    keyed = {path.split('"')[1] for path, _ in curves(human)}
    assert {"hand_ik.L", "upper_arm_ik.L", "spine_fk"} <= keyed
    assert not [name for name in keyed if name.startswith(("DEF-", "ORG-"))]


def test_key_pose_keys_the_controls_that_place_limbs_on_ik(human):
    bpy.ops.fabrik.pin(bones="foot_ik.L,foot_ik.R")
    target = scenes.empty_at((0.0, 0.1, 0.8))
    bpy.context.view_layer.objects.active = human
    bpy.ops.fabrik.add_effector(bone="torso", target=target.name)
    bpy.ops.fabrik.solve()
    bpy.ops.fabrik.key_pose()
    keyed = {path for path, _ in curves(human)}
    for side in "LR":
        assert f'pose.bones["foot_ik.{side}"].location' in keyed
        assert f'pose.bones["thigh_ik.{side}"].rotation_euler' in keyed
        assert not [path for path in keyed if f"thigh_fk.{side}" in path]
    stood = {bone: matrix(human, f"DEF-{bone}") for bone in ("spine", "thigh.L", "shin.R", "foot.L")}
    for bone in human.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.scene.frame_set(bpy.context.scene.frame_current)
    for bone, wanted in stood.items():
        assert matrix(human, f"DEF-{bone}") == pytest.approx(wanted, abs=PLACE)


@pytest.mark.parametrize("locks", [(False, True, True), (False, False, True)])
def test_locked_channels_of_controls_are_kept(human, locks):
    human.fabrik.control.limbs = "FK"
    elbow, wrist = (human.pose.bones[f"{name}_fk.L"] for name in ("forearm", "hand"))
    elbow.rotation_mode, wrist.rotation_mode = "XYZ", "XYZ"
    elbow.lock_rotation, wrist.lock_rotation = locks, (True, True, True)
    drag = led(human, (0.1, -0.4, 0.2))
    drag.finish(bpy.context)
    assert drag.left_alone == []
    goal = drag.start + np.array((0.1, -0.4, 0.2))
    assert np.array(human.pose.bones[stands_for(human, "hand_ik.L")].tail) == pytest.approx(goal, abs=PLACE)
    assert np.array(elbow.rotation_euler)[list(locks)] == pytest.approx(0.0, abs=1e-6)
    assert abs(elbow.rotation_euler[0]) > 0.1
    assert wrist.rotation_euler[:] == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)


@pytest.mark.one_blender
@pytest.mark.parametrize(
    ("locked", "locks", "mode", "parts"),
    [
        ("spine_fk", (True, True, True), "QUATERNION", True),
        ("spine_fk.001", (True, True, True), "QUATERNION", True),
        ("spine_fk.003", (False, True, True), "QUATERNION", False),
        ("shoulder.L", (True, False, False), "QUATERNION", False),
        ("upper_arm_fk.L", (False, True, False), "QUATERNION", False),
        ("spine_fk", (False, True, True), "XYZ", False),
        ("hand_ik.L", (True, True, True), "QUATERNION", False),
    ],
)
def test_locked_controls_stay_and_the_hand_reaches_its_target(human, locked, locks, mode, parts):
    """Rigify's lower spine hangs on its upper spine, against the order of the body's bones."""
    for limb in ("upper_arm_parent.L", "upper_arm_parent.R", "thigh_parent.L", "thigh_parent.R"):
        human.pose.bones[limb]["IK_FK"] = float(locked != "hand_ik.L")
    human.update_tag()
    control = human.pose.bones[locked]
    control.rotation_mode, control.lock_rotation, control.lock_rotation_w = mode, locks, parts
    control.lock_rotations_4d = parts
    control.rotation_quaternion = Quaternion((1.0, 0.2, -0.1, 0.15)).normalized()
    control.rotation_euler = (0.2, -0.1, 0.15)
    bpy.context.view_layer.update()

    def angles():
        turned = control.rotation_euler if mode == "XYZ" else control.rotation_quaternion.to_euler("XYZ")
        return np.array(turned)[list(locks)]

    before, shift = angles(), np.array((0.0, -0.15, -0.1))
    drag = led(human, shift)
    drag.finish(bpy.context)
    bpy.context.view_layer.update()
    assert angles() == pytest.approx(before, abs=1e-5)
    if locked == "spine_fk.003":
        # It follows a control whose twist does not rotate its bone, so the solver cannot know what its locks allow.
        return
    assert drag.left_alone == []
    hand = human.pose.bones[stands_for(human, "hand_ik.L")]
    assert np.array(hand.tail) == pytest.approx(drag.start + shift, abs=PLACE)


@pytest.mark.parametrize(
    ("on_fk", "limited", "named"),
    [(1.0, "ORG-forearm.L", "forearm_fk.L"), (1.0, "ORG-hand.L", "hand_fk.L"), (0.0, "ORG-hand.L", "hand_ik.L")],
)
def test_the_control_at_a_limit_is_named(human, on_fk, limited, named):
    """Rigify hides the bones whose names start with ORG."""
    human.pose.bones["upper_arm_parent.L"]["IK_FK"] = on_fk
    human.update_tag()
    bpy.context.view_layer.update()
    names = {row.name for row in human.fabrik.control.carriers} - {limited}
    bpy.ops.fabrik.set_limit(bones=",".join(names), type="FIXED")
    bpy.ops.fabrik.set_limit(bones=limited, type="HINGE", axis="X", low=-0.1, high=0.1)
    drag = begin_drag(bpy.context, human, "hand_ik.L")
    result = drag.step(drag.start + np.array((0.0, -0.2, 0.0)))
    drag.cancel()
    assert result.why == f"{named} is at its limit"


def test_a_drag_on_fk_leaves_the_stretch_of_ik(human):
    """What the animator has set for IK is not touched while the limb is on FK."""
    human.pose.bones["upper_arm_parent.L"]["IK_FK"] = 1.0
    chain = [bone for bone in human.pose.bones if bone.ik_stretch > 0.0]
    assert chain
    for bone in chain:
        bone.ik_stretch = 0.25
    led(human, (0.0, -0.15, -0.1)).finish(bpy.context)
    assert [bone.ik_stretch for bone in chain] == [0.25] * len(chain)


def test_switched_off_bones_are_dragged_as_they_are(human):
    human.fabrik.control.use = False
    led(human, (0.0, -0.1, 0.0)).finish(bpy.context)
    assert human.pose.bones["upper_arm_parent.L"]["IK_FK"] == 0.0
    pause(human)


def test_a_locked_switch_is_named_and_its_curve_stays(human):
    human.fabrik.control.limbs = "FK"
    human.keyframe_insert('pose.bones["upper_arm_parent.L"]["IK_FK"]', frame=1)
    (curve,) = human.animation_data.action.layers[0].strips[0].channelbags[0].fcurves
    curve.lock = True
    held = {path: keys.tobytes() for path, keys in curves(human).items()}
    bpy.context.scene.frame_set(20)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    drag = begin_drag(bpy.context, human, "hand_ik.L")
    drag.step(drag.start + np.array((0.05, -0.2, 0.1)))
    drag.finish(bpy.context)
    assert [note for note in drag.left_alone if "upper_arm_parent.L: unlock" in note]
    assert held.items() <= {path: keys.tobytes() for path, keys in curves(human).items()}.items()


def test_a_switch_stays_unkeyed_if_all_curves_of_the_bones_are_locked(human):
    human.fabrik.control.limbs = "FK"
    for bone in human.pose.bones:
        for channel in ("location", "rotation_quaternion", "rotation_euler"):
            bone.keyframe_insert(channel, frame=1)
    for curve in human.animation_data.action.layers[0].strips[0].channelbags[0].fcurves:
        curve.lock = True
    bpy.context.scene.frame_set(20)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    held = set(curves(human))
    drag = begin_drag(bpy.context, human, "hand_ik.L")
    drag.step(drag.start + np.array((0.05, -0.2, 0.1)))
    drag.finish(bpy.context)
    assert set(curves(human)) == held
    assert 'pose.bones["upper_arm_parent.L"]["IK_FK"]' in human.fabrik.unkeyed


def test_a_mechanism_bone_is_refused_and_not_dragged_along(human):
    """Fixed: the drag ended with a traceback."""
    mechanism = "MCH-thigh_ik_target.parent.L"
    before = channels(human)
    with pytest.raises(RuntimeError, match="is part of the rig's mechanism and can't be posed: choose a control"):
        bpy.ops.fabrik.drag(bone=mechanism, translation=(0.0, -0.1, 0.0))
    assert channels(human) == before
    assert bpy.ops.fabrik.drag(bone="hand_ik.L", others=mechanism, translation=(0.0, -0.1, 0.0)) == {"FINISHED"}


def test_a_mechanism_bone_is_not_pinned(human):
    """Fixed: it was pinned, and every later drag then moved nothing."""
    mechanism = "MCH-thigh_ik_target.parent.L"
    for use in (bpy.ops.fabrik.pin, lambda bones: bpy.ops.fabrik.add_effector(bone=bones)):
        with pytest.raises(RuntimeError, match=f"Bone '{mechanism}' is part of the rig's mechanism"):
            use(bones=mechanism)
    assert len(human.fabrik.effectors) == 0


@pytest.mark.parametrize("bone", ["ORG-foot.L", "DEF-foot.L", "foot_ik.L"])
def test_the_bones_of_a_foot_pin_the_foot(human, bone):
    """Fixed: the deform bone's parent is another deform bone, up to the pelvis, which was pinned instead."""
    bpy.ops.fabrik.pin(bones=bone)
    assert [pin.bone for pin in human.fabrik.effectors] == ["ORG-foot.L"]


def test_a_control_that_is_not_a_number_is_named(human):
    human.pose.bones["torso"].location.x = float("nan")
    bpy.context.view_layer.update()
    with pytest.raises(RuntimeError, match="Bone 'torso' is too far away, or its pose is not a number"):
        bpy.ops.fabrik.drag(bone="hand_ik.L", translation=(0.0, -0.1, 0.0))
