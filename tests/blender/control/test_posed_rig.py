"""One interface for rigs that are posed by their bones and by controls: writing, reading, rotating and keying."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix
from support.control_rigs import arp_like, cloud_like, hand_made
from support.dragging import person
from support.rigify import open_set_up

from fabrik_addon.blender.control.posed_rig import ControlRig, PlainRig, posed_rig
from fabrik_addon.blender.control.writer import Deviation, deviation_warning, evaluate, limbs_on_ik
from fabrik_addon.core import forward_kinematics
from fabrik_addon.core.channels import from_channels
from fabrik_addon.core.rotations import angle_between, product, quaternion_from_rotation_vector
from fabrik_addon.markers.steps import finish

pytestmark = pytest.mark.usefixtures("clean_scene")

# Radians and meters: matrices are in single precision.
TURN, PLACE = 2e-4, 1e-4


@pytest.fixture(params=[person, arp_like, cloud_like, hand_made])
def posed(request):
    rig = person() if request.param is person else open_set_up(request.param)
    rig.fabrik.control.limbs = "FK"
    bpy.context.view_layer.update()
    return posed_rig(rig)


def turned(tree, scale=0.2, seed=4):
    """(J, 4) local rotations near a tree's own, and (3,) a location near that of its root."""
    random = np.random.default_rng(seed)
    turns = quaternion_from_rotation_vector(random.normal(scale=scale, size=(len(tree.skeleton), 3)))
    return product(tree.rotations, turns), tree.root_location + np.array((0.05, -0.1, 0.02))


def test_the_kind_of_a_rig_is_found(posed):
    is_control_rig = len(posed.rig.fabrik.control.carriers) > 0
    assert type(posed) is (ControlRig if is_control_rig else PlainRig)
    assert posed.by_channels is not is_control_rig
    posed.rig.fabrik.control.use = False
    assert type(posed_rig(posed.rig)) is PlainRig


def test_written_files_are_read(posed):
    (tree,) = posed.trees()
    rotations, head = turned(tree)
    assert posed.write(bpy.context, tree.skeleton, rotations, head) == []
    bpy.context.view_layer.update()
    (now,) = posed.trees()
    assert angle_between(now.rotations, rotations).max() < TURN
    assert np.abs(now.root_location - head).max() < PLACE
    wanted = forward_kinematics(tree.skeleton, rotations, head)
    assert np.abs(posed.current_matrices(now) - wanted)[..., :3, 3].max() < PLACE
    local = posed.local(tree.skeleton.names)
    assert angle_between(np.array([local[name] for name in tree.skeleton.names]), rotations).max() < TURN


def test_a_rotated_bone_does_not_change_the_others(posed):
    (tree,) = posed.trees()
    bone = tree.skeleton.names[2]
    rotations, _ = turned(tree)
    left, changed = posed.turn(bpy.context, {bone: rotations[2]})
    bpy.context.view_layer.update()
    (now,) = posed.trees()
    off = angle_between(now.rotations, tree.rotations)
    assert left == []
    assert angle_between(now.rotations[2], rotations[2]) < TURN
    assert np.delete(off, 2).max() < TURN
    assert posed.holders(bone)[0] in {holder for holder, _ in changed}


def test_channels_over_frames_are_those_of_the_poses_one_by_one(posed):
    (tree,) = posed.trees()
    skeleton = tree.skeleton
    poses = [turned(tree, seed=seed) for seed in range(3)]
    rotations, heads = (np.array(each) for each in zip(*poses, strict=True))
    take = finish(posed.channels(bpy.context, skeleton, (rotations, heads), skeleton.names, moves_root=True))
    bones = posed.rig.pose.bones
    for row in range(3):
        posed.write(bpy.context, skeleton, rotations[row], heads[row])
        for holder, turns in take.rotations.items():
            mode = bones[holder].rotation_mode
            held = from_channels(
                mode, getattr(bones[holder], {"QUATERNION": "rotation_quaternion"}.get(mode, "rotation_euler"))
            )
            assert angle_between(held, turns[row]) < TURN
        for holder, locations in take.locations.items():
            assert np.abs(np.array(bones[holder].location) - locations[row]).max() < PLACE
    assert set(take.rotations) >= {posed.holders(name)[0] for name in skeleton.names}
    assert set(take.locations) == {posed.place(skeleton.names[0])}


def test_the_controls_that_move_a_pose_are_keyed(posed):
    (tree,) = posed.trees()
    names = tree.skeleton.names
    # Limbs switch to FK, on which each bone has its own control.
    posed.write(bpy.context, tree.skeleton, *turned(tree))
    pairs = list(posed.keyed(list(names), [names[0]]))
    assert {bone for bone, channel in pairs if channel != "location"} == {posed.holders(name)[0] for name in names} | {
        posed.place(names[0])
    }
    assert [bone for bone, channel in pairs if channel == "location"] == [posed.place(names[0])]
    paths = posed.written(tree.skeleton, list(names), moves_root=True)
    assert {posed.rig.pose.bones[bone].path_from_id(channel) for bone, channel in pairs} <= paths


@pytest.mark.parametrize(("distance", "shown"), [(0.0021, "2.1 mm"), (2.1e-6, "0.002 mm")])
def test_a_warning_shows_small_distances_of_small_rigs(distance, shown):
    setup = open_set_up(hand_made).fabrik.control
    assert f"is off by {shown} and 0.00°" in deviation_warning(setup, Deviation(setup.carriers[0].name, distance, 0.0))


@pytest.mark.one_blender
@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("angle", "moves"), [(1e-6, False), (1e-3, True)])
def test_whether_a_foot_rotates_does_not_depend_on_the_units(size, angle, moves):
    """Fixed: in centimeters, rotations of less than 0.2 degrees did not count."""
    rig = open_set_up("Basic.basic_human")
    path = rig.fabrik.control.carriers["ORG-foot.L"].switch
    limb = limbs_on_ik(rig, rig.fabrik.control, [path], {})[path]
    limb.here[:, :3, 3] *= size
    limb.lengths, limb.size = size * limb.lengths, size * limb.size
    wanted, foot = limb.here.copy(), limb.bones.index("ORG-foot.L")
    wanted[foot, :3, :3] = np.array(Matrix.Rotation(angle, 3, "X")) @ wanted[foot, :3, :3]
    assert limb.moves_end(wanted) is moves


def test_a_foot_and_its_toes_are_placed_together():
    """Fixed: the toes' control was rotated as if the foot stayed, so the foot was put back where both were rotated."""
    rig = open_set_up("Basic.basic_human")
    path = rig.fabrik.control.carriers["ORG-foot.L"].switch
    limb = limbs_on_ik(rig, rig.fabrik.control, [path], {})[path]
    wanted = limb.here.copy()
    foot, toe = (limb.bones.index(name) for name in ("ORG-foot.L", "ORG-toe.L"))
    turn = np.array(Matrix.Rotation(0.4, 3, (0.6, 0.8, 0.0)))
    arm = wanted[toe, :3, 3] - wanted[foot, :3, 3]
    wanted[[foot, toe], :3, 3] += (0.0, -0.05, 0.1)
    wanted[toe, :3, 3] += turn @ arm - arm
    wanted[foot, :3, :3] = turn @ wanted[foot, :3, :3]
    assert limb.turned_by
    limb.lead(wanted)
    evaluate(bpy.context.view_layer.update, [limb])
    assert limb.errors(wanted)[0] < 1.0
