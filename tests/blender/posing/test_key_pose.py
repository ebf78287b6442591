"""Key Pose keys the bones posed by drags, Solve and Live since the last key, the whole body, or selected bones."""

import bpy
import numpy as np
import pytest
from support.dragging import drag_by, person, world
from support.limited import refusal, select
from support.rigify import open_set_up
from support.takes import curves, go_to

from fabrik_addon.blender.posing.drag import begin_drag
from fabrik_addon.blender.posing.key_pose import key_pose
from fabrik_addon.blender.rig.pose_writer import pose_key
from fabrik_addon.core.errors import FabrikError

pytestmark = pytest.mark.usefixtures("clean_scene", "preferences")

HERE = 20
HANDS = ("forearm.L", "forearm.R")


def keyed_person(frames=(1, 40)):
    """A person with keys for all bones on some frames. A drag moves only some of the bones."""
    rig = person()
    rig.fabrik.free_limbs_hang = False
    for frame in frames:
        for bone in rig.pose.bones:
            bone.keyframe_insert("rotation_quaternion", frame=frame)
            bone.keyframe_insert("location", frame=frame)
    go_to(HERE)
    return rig


def keyed_here(rig, frame=HERE):
    """The bones with a key on a frame."""
    return {path.split('"')[1] for (path, _), keys in curves(rig).items() if frame in keys[:, 0]}


def drag_hands(rig, bones=HANDS, shift=(0.0, -0.25, 0.1)):
    """Drag the hands; returns the positions of the dragged points."""
    for bone in bones:
        drag_by(rig, bone, shift)
    return np.array([world(rig, bone) for bone in bones])


@pytest.mark.parametrize("pinned", [True, False])
def test_dragged_poses_stay_when_the_frame_is_visited_again(pinned):
    rig = keyed_person()
    if pinned:
        bpy.ops.fabrik.pin(bones="shin.L,shin.R")
    places = drag_hands(rig)
    assert bpy.ops.fabrik.key_pose() == {"FINISHED"}
    go_to(HERE + 1)
    go_to(HERE)
    assert np.array([world(rig, bone) for bone in HANDS]) == pytest.approx(places, abs=1e-5)
    assert set(HANDS) <= keyed_here(rig)
    assert ({"shin.L", "thigh.R"} <= keyed_here(rig)) == pinned


def test_keyed_bones_are_not_keyed_again():
    rig = keyed_person()
    drag_hands(rig, HANDS)
    # Its keys restore its pose, so there is nothing to key.
    go_to(HERE + 1)
    assert "was posed since its last key" in refusal(bpy.ops.fabrik.key_pose)
    go_to(HERE)
    drag_hands(rig, HANDS[:1])
    bpy.ops.fabrik.key_pose()
    first = keyed_here(rig)
    assert "forearm.L" in first
    assert "forearm.R" not in first
    go_to(30)
    assert "was posed since its last key" in refusal(bpy.ops.fabrik.key_pose)
    drag_hands(rig, HANDS[1:])
    bpy.ops.fabrik.key_pose()
    assert "forearm.R" in keyed_here(rig, 30)
    assert "forearm.L" not in keyed_here(rig, 30)


def test_channels_keyed_by_auto_keying_are_not_keyed_again():
    rig = keyed_person()
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    drag_hands(rig)
    go_to(30)
    assert "was posed since its last key" in refusal(bpy.ops.fabrik.key_pose)


def test_a_drag_that_is_cancelled_leaves_nothing_to_key():
    rig = keyed_person()
    drag = begin_drag(bpy.context, rig, HANDS[0])
    drag.step(drag.start + np.array((0.0, -0.2, 0.1)))
    drag.cancel()
    assert "was posed since its last key" in refusal(bpy.ops.fabrik.key_pose)


def test_the_whole_body_or_the_selected_bones_are_keyed():
    rig = keyed_person()
    rig.fabrik.key_bones = "WHOLE"
    assert bpy.ops.fabrik.key_pose() == {"FINISHED"}
    assert keyed_here(rig) == set(rig.pose.bones.keys())
    select(rig, ("head", "spine"), "head")
    go_to(25)
    rig.fabrik.key_bones = "SELECTED"
    assert bpy.ops.fabrik.key_pose() == {"FINISHED"}
    assert keyed_here(rig, 25) == {"head", "spine"}


def test_other_keys_keep_their_pose_where_a_bone_gets_its_first_key():
    rig = person()
    for frame, angle in ((1, 0.0), (40, 0.5)):
        rig.pose.bones["thigh.L"].rotation_quaternion = (np.cos(angle), np.sin(angle), 0.0, 0.0)
        rig.pose.bones["thigh.L"].keyframe_insert("rotation_quaternion", frame=frame)
    go_to(HERE)
    before = world(rig, "forearm.L")
    (place,) = drag_hands(rig, HANDS[:1])
    bpy.ops.fabrik.key_pose()
    for frame, wanted in ((1, before), (HERE, place), (40, before), (60, before)):
        go_to(frame)
        assert world(rig, "forearm.L") == pytest.approx(wanted, abs=1e-4), frame


def test_on_a_control_rig_the_controls_that_have_moved_get_keys():
    rig = open_set_up("Basic.basic_human")
    for name in ("hand_ik.L", "hand_ik.R"):
        for frame in (1, 40):
            rig.pose.bones[name].keyframe_insert("location", frame=frame)
    go_to(HERE)
    bpy.ops.fabrik.pin(bones="foot_ik.L,foot_ik.R")
    hands = [rig.fabrik.control.controls[f"hand_ik.{side}"].stands_for for side in "LR"]
    places = drag_hands(rig, hands)
    bpy.ops.fabrik.key_pose()
    assert {"hand_ik.L", "hand_ik.R", "foot_ik.L", "torso"} <= keyed_here(rig)
    go_to(HERE + 1)
    go_to(HERE)
    assert np.array([world(rig, bone) for bone in hands]) == pytest.approx(places, abs=1e-4)
    go_to(30)
    rig.fabrik.key_bones = "WHOLE"
    assert bpy.ops.fabrik.key_pose() == {"FINISHED"}
    keyed = keyed_here(rig, 30)
    assert {"hand_ik.L", "upper_arm_ik.R", "foot_ik.R", "torso", "spine_fk.001", "head"} <= keyed
    assert not {"hand_fk.L", "thigh_fk.R", "ORG-hand.L"} & keyed


def a_keying_set_with_a_missing_property(rig):
    own = bpy.context.scene.keying_sets.new(idname="own", name="Own")
    for name in ("rotation_quaternion", "missing"):
        own.paths.add(rig, f'pose.bones["{HANDS[0]}"]' + (f'["{name}"]' if name == "missing" else f".{name}"))
    bpy.context.scene.keying_sets.active = own


def a_missing_switch(rig):
    del rig.pose.bones["upper_arm_parent.L"]["IK_FK"]


@pytest.mark.parametrize(
    ("make", "bone", "told"),
    [
        (a_keying_set_with_a_missing_property, HANDS[0], r"'forearm\.L' has no property .*missing"),
        (a_missing_switch, "hand_ik.L", "no longer has .*IK_FK"),
    ],
)
def test_either_all_bones_are_keyed_or_none(make, bone, told):
    """Fixed: keys were set before the error."""
    rig = keyed_person() if bone in HANDS else open_set_up("Basic.basic_human")
    rig.pose.bones[bone].keyframe_insert("location", frame=1)
    go_to(HERE)
    drag_hands(rig, (bone,))
    make(rig)
    keys, pose = curves(rig), list(pose_key(rig))
    with pytest.raises(FabrikError, match=told):
        key_pose(bpy.context, rig)
    after = curves(rig)
    assert after.keys() == keys.keys()
    assert all(np.array_equal(after[path], keys[path]) for path in keys)
    assert list(pose_key(rig)) == pose
