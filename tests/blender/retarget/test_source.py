"""Sampling a source: from its curves if these determine its poses, else by evaluation, with the same result."""

import bpy
import numpy as np
import pytest
from support.scenes import make_rig, place, pose, smooth_motion

from fabrik_addon.blender.retarget import plain_poses, sample_source
from fabrik_addon.blender.rig.keyframes import curves
from fabrik_addon.core.rotations import matrix_from_quaternion
from fabrik_addon.markers.steps import finish

KEYED = (1, 9, 20)
FRAMES = np.arange(-2, 24)


def constrained(source):
    made = source.pose.bones["forearm.L"].constraints.new("COPY_ROTATION")
    made.target, made.subtarget = source, "spine"


def driven(source):
    source.pose.bones["head"].rotation_mode = "XYZ"
    source.pose.bones["head"].driver_add("rotation_euler", 0).driver.expression = "frame / 40"


def as_strip(source):
    action = source.animation_data.action
    track = source.animation_data.nla_tracks.new()
    track.strips.new("take", 3, action)
    source.animation_data.action = None


def led(source):
    source.location = (1.0, 2.0, 3.0)
    source.keyframe_insert("location", frame=1)
    source.location.x = 5.0
    source.keyframe_insert("location", frame=20)


def growing(source):
    source.pose.bones["spine"].scale = (1.0, 1.3, 1.0)
    source.pose.bones["spine"].keyframe_insert("scale", frame=9)


def muted(source):
    curves(source)[0].mute = True


def wavy(source):
    curves(source)[0].modifiers.new("NOISE")


def turned_free(source):
    source.data.bones["upper_arm.L"].use_inherit_rotation = False


def straight(source):
    for curve in curves(source):
        for key in curve.keyframe_points:
            key.interpolation = "LINEAR"


def unscaled(source):
    for bone in source.pose.bones:
        bone.keyframe_insert("scale", frame=3)


WAYS = {way: way in {straight, unscaled, place} for way in
        (place, straight, unscaled, constrained, driven, as_strip, led, growing, muted, wavy, turned_free)}  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_source_is_sampled_as_blender_shows_it(clean_scene, way):
    source = make_rig(name="Source", mode="MIXED")
    turns, moves = smooth_motion(source, len(KEYED), travel=1.0)
    for frame, rotations, move in zip(KEYED, turns, moves, strict=True):
        pose(source, rotations, move)
        for bone in source.pose.bones:
            for channel in ("location", "rotation_quaternion", "rotation_axis_angle", "rotation_euler"):
                bone.keyframe_insert(channel, frame=frame)
    way(source)
    bpy.context.view_layer.update()
    assert (plain_poses(source, FRAMES) is not None) == WAYS[way]
    motion = finish(sample_source(bpy.context, source, FRAMES))
    for row, frame in enumerate(FRAMES.tolist()):
        bpy.context.scene.frame_set(frame)
        shown = [np.array(source.matrix_world @ source.pose.bones[name].matrix) for name in motion.names]
        axes = np.array([each[:3, :3] / np.linalg.norm(each[:3, :3], axis=0) for each in shown])
        assert np.abs(motion.heads[row] - [each[:3, 3] for each in shown]).max() < 2e-6
        if way is not growing:
            assert np.abs(matrix_from_quaternion(motion.rotations[row]) - axes).max() < 2e-5
