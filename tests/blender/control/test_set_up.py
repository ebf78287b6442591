"""Finding the controls of rigs by trying them."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import limited, scenes
from support.control_rigs import hand_made, only_ik
from support.rigify import open_rigify, open_set_up

from fabrik_addon.blender.control.posed_rig import posed_rig
from fabrik_addon.blender.control.switches import bone_in_path
from fabrik_addon.blender.control.writer import ControlWriter
from fabrik_addon.blender.settings import selection
from fabrik_addon.blender.settings.control import solved_bone
from fabrik_addon.core.rotations import product, quaternion_from_rotation_vector

pytestmark = pytest.mark.usefixtures("clean_scene")

HUMAN = "Basic.basic_human"
CHANNELS = ("location", "rotation_quaternion", "rotation_axis_angle", "rotation_euler", "scale", "matrix")


def set_up():
    assert bpy.ops.fabrik.use_control_rig() == {"FINISHED"}
    return bpy.context.object.fabrik.control


def carriers(kept):
    return {row.name: row.control for row in kept.carriers}


def everything(rig):
    """All numbers of a rig's pose, and its custom properties, without rounding."""
    bpy.context.view_layer.update()
    numbers = [
        np.array([getattr(bone, name) for bone in rig.pose.bones], dtype=np.float32).tobytes() for name in CHANNELS
    ]
    own = {
        bone.name: [(key, bone[key]) for key in sorted(dict(bone.items())) if isinstance(bone[key], (int, float))]
        for bone in rig.pose.bones
    }
    return numbers, own


def kept_rows(kept):
    return [
        [[getattr(row, each.identifier) for each in row.bl_rna.properties if each.type != "POINTER"] for row in rows]
        for rows in (kept.carriers, kept.controls, kept.switches)
    ] + [kept.place, kept.uncarried]


@pytest.fixture
def known():
    """The controls of the human, found when it was set up."""
    return open_set_up(HUMAN).fabrik.control


class TestGeneratedHuman:
    def test_fk_controls_carry_the_body_though_limbs_are_on_ik(self, known):
        found = carriers(known)
        by_part = {bone.partition("-")[2]: control for bone, control in found.items()}
        sides = [
            f"{part}.{side}"
            for part in ("thigh", "shin", "foot", "toe", "upper_arm", "forearm", "hand")
            for side in "LR"
        ]
        for part in sides:
            assert by_part[part] == part.replace(".", "_fk.")
        assert by_part["shoulder.L"] == "shoulder.L"
        spine = {
            "spine": "spine_fk",
            "spine.001": "spine_fk.001",
            "spine.002": "spine_fk.002",
            "spine.003": "spine_fk.003",
            "spine.004": "neck",
            "spine.006": "head",
        }
        assert {part: by_part[part] for part in spine} == spine
        assert known.place == "torso"

    def test_the_body_is_one_tree_from_the_hips(self, known):
        parents = {row.name.partition("-")[2]: row.parent.partition("-")[2] for row in known.carriers}
        assert [part for part, parent in parents.items() if not parent] == ["spine"]
        leg = ("thigh.L", "shin.L", "foot.L", "toe.L")
        assert [parents[part] for part in leg] == ["spine", *leg[:-1]]
        arm = ("shoulder.R", "upper_arm.R", "forearm.R", "hand.R")
        assert [parents[part] for part in arm] == ["spine.003", *arm[:-1]]
        assert [parents[part] for part in ("spine.004", "spine.006")] == ["spine.003", "spine.004"]

    def test_the_switches_of_a_rig_are_found(self, known):
        assert {row.name: row.fk for row in known.switches} == {
            f'pose.bones["{limb}_parent.{side}"]["IK_FK"]': 1.0 for limb in ("thigh", "upper_arm") for side in "LR"
        }

    def test_controls_represent_bones(self, known):
        stands = {row.name: row.stands_for.partition("-")[2] for row in known.controls}
        wanted = {
            "hand_ik.L": "hand.L",
            "foot_ik.R": "foot.R",
            "torso": "spine",
            "chest": "spine.003",
            "head": "spine.006",
            "hips": "spine",
            "thigh_fk.L": "thigh.L",
        }
        assert {name: stands[name] for name in wanted} == wanted

    def test_a_set_up_in_any_pose_is_the_same_and_restores_the_rig(self):
        rows = kept_rows(open_set_up(HUMAN).fabrik.control)
        rig = open_rigify(HUMAN)
        rig.pose.bones["torso"].rotation_quaternion = (0.9, 0.1, 0.3, -0.2)
        rig.pose.bones["hand_ik.L"].location = (0.1, -0.2, 0.3)
        rig.pose.bones["thigh_parent.L"]["IK_FK"] = 1.0
        rig.pose.bones["upper_arm_parent.R"]["IK_FK"] = 0.4
        before = everything(rig)
        assert kept_rows(set_up()) == rows
        assert everything(rig) == before

    def test_a_locked_location_is_found_and_stays_locked(self, known):
        rows, torso = kept_rows(known), known.id_data.pose.bones["torso"]
        torso.lock_location = (True, False, False)
        assert kept_rows(set_up()) == rows
        assert torso.lock_location[:] == (True, False, False)

    def test_controls_chosen_by_hand_stay(self, known):
        row = next(row for row in known.carriers if row.control == "neck")
        name, row.control = row.name, "tweak_spine.004"
        assert row.found == "HAND"
        assert carriers(set_up())[name] == "tweak_spine.004"

    def test_the_set_up_is_saved(self, known, tmp_path):
        rows = kept_rows(known)
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "saved.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "saved.blend"))
        assert kept_rows(bpy.data.objects["Generated"].fabrik.control) == rows

    def test_a_library_override_keeps_the_set_up(self, known, tmp_path):
        rows = kept_rows(known)
        file = tmp_path / "library.blend"
        bpy.ops.wm.save_as_mainfile(filepath=str(file))
        rig = limited.override(file, "Generated")
        assert kept_rows(rig.fabrik.control) == rows


@pytest.mark.one_blender
def test_the_body_has_the_written_pose_however_each_joint_is_rotated():
    """A bird, whose tail and claws have controls that rotate each other.

    Joints that cannot be posed are left out by name.
    """
    rig = open_rigify("Animals.bird")
    kept = set_up()
    kept.limbs = "FK"
    assert kept.place == "torso"
    assert kept.uncarried == "DEF-spine.004"
    wanted = {
        "spine_fk.003",
        "spine.002",
        "spine",
        "shoulder.L",
        "Wing.L",
        "Wing.002.R",
        "neck",
        "head",
        "thigh_fk.L",
        "shin_fk.R",
        "toe.L",
    }
    assert wanted <= set(carriers(kept).values())
    bpy.context.view_layer.update()
    (tree,) = posed_rig(rig).trees()
    random = np.random.default_rng(3)
    turns = quaternion_from_rotation_vector(random.normal(scale=0.3, size=(len(tree.skeleton), 3)))
    writer = ControlWriter(bpy.context.view_layer.update, rig, kept, tree.skeleton)
    writer.write(product(tree.rotations, turns), tree.root_location + np.array((0.1, -0.2, 0.05)))
    bpy.context.view_layer.update()
    assert writer.deviations() == []


def test_limits_are_those_of_the_bone_that_a_control_stands_for():
    rig = open_set_up(HUMAN)
    shin = rig.pose.bones["ORG-shin.L"]
    rig.data.bones.active = rig.data.bones["shin_fk.L"]
    assert selection.active_bone(rig) == shin
    bpy.ops.fabrik.set_limit(bones="shin_fk.L", type="HINGE", axis="X")
    bpy.ops.fabrik.mirror_limits(bones="shin_fk.L")
    assert {bone.name for bone in rig.pose.bones if "fabrik_limit" in bone} == {"ORG-shin.L", "ORG-shin.R"}
    bpy.context.object.fabrik_stiffness_of_selected = 0.5
    assert shin["fabrik_stiffness"] == 0.5
    bpy.ops.fabrik.clear_limit(bones="shin_fk.L,shin_fk.R")
    assert not [bone.name for bone in rig.pose.bones if "fabrik_limit" in bone]


def test_a_rig_without_constraints_is_refused():
    scenes.make_active(scenes.make_rig())
    with pytest.raises(RuntimeError, match="'Rig' is not a control rig"):
        bpy.ops.fabrik.use_control_rig()


def test_a_bone_of_the_body_that_was_renamed_is_named():
    rig = scenes.make_rig()
    scenes.make_active(rig)
    for bone in rig.pose.bones:
        carrier = rig.fabrik.control.carriers.add()
        carrier.name, carrier.parent = bone.name, bone.parent.name if bone.parent else ""
        carrier.control = bone.name
    rig.data.bones["head"].name = "Head"
    told = limited.refusal(bpy.ops.fabrik.drag, bone="forearm.L", translation=(0.0, 0.0, 0.1))
    assert "'Rig' no longer has 'head' (was a bone renamed?): press Set Up Control Rig again" in told


def test_a_bone_with_a_renamed_switch_is_named_and_the_rig_is_set_up_again():
    rig = only_ik()
    bpy.ops.fabrik.use_control_rig()
    path = rig.fabrik.control.along[0].name
    rig.data.bones[bone_in_path(path)].name = "renamed"
    told = limited.refusal(bpy.ops.fabrik.drag, bone="head", translation=(0.0, 0.0, -0.1))
    assert "(was a bone renamed?): press Set Up Control Rig again" in told
    assert "(was a bone renamed?): press" in limited.refusal(bpy.ops.fabrik.key_pose, bones="WHOLE")
    bpy.ops.fabrik.use_control_rig()
    assert any('"renamed"' in row.name for row in rig.fabrik.control.along)
    bpy.ops.fabrik.drag(bone="head", translation=(0.0, 0.0, -0.1))


def test_ik_without_a_pole_leaves_the_body_whole():
    rig = only_ik()
    for bone in rig.pose.bones:
        for each in bone.constraints:
            if each.type == "IK":
                each.pole_target = None
    kept = set_up()
    assert len(kept.carriers) == 21
    assert [row.name for row in kept.carriers if not row.parent] == ["hips"]
    assert kept.uncarried == ""


def test_controls_of_a_renamed_bone_mean_themselves():
    """Fixed: the panel of joint limits raised an error at each redraw."""
    rig = hand_made()
    scenes.make_active(rig)
    bpy.ops.fabrik.use_control_rig()
    control = next(row for row in rig.fabrik.control.controls if row.stands_for and row.stands_for != row.name)
    name, bone = control.name, control.stands_for
    assert solved_bone(rig, name) == bone
    rig.pose.bones[bone].name = "renamed"
    assert solved_bone(rig, name) in rig.pose.bones
    limited.select(rig, [name, "renamed"], active=name)
    assert {each.name for each in selection.selected_bones(bpy.context, rig)} <= {*rig.pose.bones.keys()}


@pytest.mark.one_blender
def test_targets_and_pins_that_a_rig_had_before_are_those_of_its_body():
    """Fixed: Solve refused them, because it no longer solved the controls."""
    rig = open_rigify(HUMAN)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.fabrik.add_effector(bone="hand_ik.L")
    bpy.ops.fabrik.pin(bones="foot_ik.L")
    target, pin = rig.fabrik.effectors
    foot = np.array(rig.pose.bones["ORG-foot.L"].matrix)
    set_up()
    assert [(each.bone, each.control) for each in (target, pin)] == [
        ("ORG-hand.L", "hand_ik.L"),
        ("ORG-foot.L", "foot_ik.L"),
    ]
    target.target.location += Vector((0.0, -0.1, 0.1))
    assert bpy.ops.fabrik.solve() == {"FINISHED"}
    bpy.context.view_layer.update()
    control = rig.pose.bones["hand_ik.L"]
    assert np.array(rig.matrix_world @ control.tail) == pytest.approx(target.target.location, abs=1e-4)
    assert np.array(rig.pose.bones["ORG-foot.L"].matrix) == pytest.approx(foot, abs=1e-4)
    # Setting up again changes nothing.
    places = [(each.bone, each.control, tuple(each.offset)) for each in (target, pin)]
    set_up()
    assert [(each.bone, each.control, tuple(each.offset)) for each in (target, pin)] == places
