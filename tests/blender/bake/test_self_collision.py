"""Bakes and retargets that keep a person's hands out of the body: on the hips, then crossed before the chest."""

import bpy
import numpy as np
import pytest
from support import scenes, takes

from fabrik_addon.blender.bake.bake import bake
from fabrik_addon.blender.control.posed_rig import posed_rig
from fabrik_addon.blender.goals.body import collision_of
from fabrik_addon.blender.retarget import retarget_from
from fabrik_addon.core.kernel.bodies import Bodies
from fabrik_addon.core.kernel.bounds import Capsules
from fabrik_addon.markers.steps import finish

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]

LAST = 20
FRAMES = np.arange(1, LAST + 1)
FEET = ("foot.L", "foot.R")


def hands_on_hips():
    """The sample person with pinned feet, whose hands move into the hips, cross at the chest, and return."""
    rig = takes.active_human()
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.fabrik.pin(bones=",".join(FEET))
    hips = np.array(rig.pose.bones["hips"].head)
    for side, sign in (("L", 1.0), ("R", -1.0)):
        rest = np.array(rig.pose.bones[f"hand.{side}"].tail)
        target = scenes.empty_at(rest, side)
        places = rest, hips + np.array((0.08 * sign, -0.02, 0.06)), np.array((-0.02 * sign, -0.35, 1.3)), rest
        for frame, place in zip((1, 7, 13, LAST), places, strict=True):
            target.location = place
            target.keyframe_insert("location", frame=frame)
        bpy.context.view_layer.objects.active = rig
        bpy.ops.fabrik.add_effector(bone=f"hand.{side}", target=target.name)
    return rig


def overlaps(rig):
    """(F,) the deepest overlap of the person's capsules on each frame, in meters, from the evaluated pose."""
    found = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(int(frame))
        (tree,) = posed_rig(rig).trees()
        bones = list(range(len(tree.skeleton)))
        bodies = Bodies(tree.skeleton, bones, [np.eye(3)] * len(bones), True)
        capsules = Capsules(bodies, collision_of(rig, tree.skeleton, always=True))
        found.append(capsules.depths(bodies.pose(tree.rotations, tree.root_location)).max(initial=0.0))
    return np.array(found)


def test_a_bake_moves_hands_out_of_the_body_and_feet_stay():
    rig = hands_on_hips()
    bake(bpy.context, rig, frame_start=1, frame_end=LAST)
    inside, was = overlaps(rig), takes.poses(rig, FRAMES)
    assert inside.max() > 0.08
    result = bake(bpy.context, rig, frame_start=1, frame_end=LAST, self_collision="ON")
    assert result.report.doubts == ()
    now, names = takes.poses(rig, FRAMES), rig.pose.bones.keys()
    assert overlaps(rig).max() < 1e-3
    feet = [names.index(name) for name in FEET]
    assert now[:, feet] == pytest.approx(was[:, feet], abs=1e-3)
    assert takes.accelerations(now[..., :3, 3]).max() < 1.05 * takes.accelerations(was[..., :3, 3]).max()
    # The report contains the distances of the hands from their targets.
    assert 0.005 < result.report.total.max < 0.1


def test_a_bake_without_overlaps_is_the_same():
    rig = hands_on_hips()
    for name in "LR":
        bpy.data.objects[name].animation_data_clear()
    bake(bpy.context, rig, frame_start=1, frame_end=5)
    before = {path: keys.tobytes() for path, keys in takes.curves(rig).items()}
    bake(bpy.context, rig, frame_start=1, frame_end=5, self_collision="ON")
    assert {path: keys.tobytes() for path, keys in takes.curves(rig).items()} == before


def test_a_retarget_moves_them_out_too():
    source = hands_on_hips()
    bake(bpy.context, source, frame_start=1, frame_end=LAST)
    rig = source.copy()
    rig.data = source.data.copy()
    rig.name = "Other"
    rig.animation_data_clear()
    rig.fabrik.effectors.clear()
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.update()

    def retargeted(**options):
        finish(retarget_from(bpy.context, rig, source, (1, LAST), scenes.RETARGETED, options))
        return overlaps(rig).max()

    assert retargeted() > 0.08
    assert retargeted(self_collision="ON") < 1e-3
