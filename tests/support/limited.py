"""Rigs with limits for the Blender tests, and the stored values of their limits."""

from math import pi

import bpy
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from mathutils import Quaternion

from fabrik_addon.blender.settings.limit_properties import NAMES, clear_limit, read_settings, write_settings
from fabrik_addon.blender.settings.limit_values import settings_of
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon

from . import scenes


def in_one_scene(examples):
    """Hypothesis' settings for a test whose examples share the scene that a fixture makes."""
    return settings(max_examples=examples, suppress_health_check=[HealthCheck.function_scoped_fixture])


def angles(low, high):
    """Angles in which very small values are replaced by zero."""
    return st.floats(low, high).map(lambda angle: round(angle, 6) + 0.0)


def ranges(low=-2 * pi, high=2 * pi):
    """(low, high) pairs."""
    return st.tuples(angles(low, high), angles(low, high)).map(sorted).map(tuple)


@st.composite
def windows(draw):
    """Simple polygons: stars about any point, in either winding, with or without rest inside."""
    count = draw(st.integers(3, 8))
    steps = draw(st.lists(st.floats(0.2, 1.0), min_size=count, max_size=count))
    sizes = draw(st.lists(st.floats(0.2, 1.0), min_size=count, max_size=count))
    center = np.array(draw(st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))))
    turn = 2 * pi * np.cumsum(steps) / sum(steps)
    if np.diff(turn, append=turn[0] + 2 * pi).max() > 0.95 * pi:
        turn = 2 * pi * np.arange(count) / count
    corners = center + np.array(sizes)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return [tuple(corner) for corner in corners[:: draw(st.sampled_from([1, -1]))].tolist()]


balls = st.builds(Ball, st.tuples(*[angles(0.0, 3.14)] * 4), ranges())
hinges = st.builds(lambda axis, ends: Hinge(axis, *ends), st.sampled_from("XYZ"), ranges())
polygons = st.builds(Polygon, windows(), ranges())
limits = st.one_of(balls, hinges, polygons, st.just(Fixed()))


def write_limit(bone, limit):
    """Store a limit on a bone; None frees it."""
    if limit is None:
        clear_limit(bone)
    else:
        write_settings(bone, settings_of(limit, read_settings(bone)))


def make_mirrored_rig(roll=0.3, name="Rig"):
    """The scenes' person with mirrored rolls, in Object mode and active."""
    rig = scenes.make_rig(name=name)
    scenes.make_active(rig)
    set_rolls(rig, {bone.name: roll * (-1 if bone.name.endswith(".R") else 1) for bone in rig.data.bones})
    return rig


def set_rolls(rig, rolls):
    bpy.ops.object.mode_set(mode="EDIT")
    for name, roll in rolls.items():
        rig.data.edit_bones[name].roll = roll
    bpy.ops.object.mode_set(mode="OBJECT")


def select(rig, names, active=None):
    """Select bones in Pose mode, and no others."""
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones[active] if active else None
    for bone in rig.pose.bones:
        holder = bone if hasattr(bone, "select") else bone.bone
        holder.select = bone.name in names


def kept(rig):
    """All stored values of the limits of a rig's bones."""
    return {
        bone.name: {name: plain(bone[name]) for name in NAMES.values() if name in bone}
        for bone in rig.pose.bones
        if any(name in bone for name in NAMES.values())
    }


def plain(value):
    return value if isinstance(value, (str, float)) else tuple(value)


def near(found, wanted):
    """Whether two results of `kept` agree up to rounding; ranges of nearly a full turn are equal."""
    if found.keys() != wanted.keys():
        return False
    return all(_near(found[bone], wanted[bone]) for bone in wanted)


def _near(found, wanted):
    if found.keys() != wanted.keys():
        return False
    texts = [name for name in wanted if isinstance(wanted[name], str)]
    numbers = [name for name in wanted if name not in texts]
    return all(found[name] == wanted[name] for name in texts) and all(
        np.shape(found[name]) == np.shape(wanted[name]) and np.allclose(found[name], wanted[name], atol=2e-5)
        for name in numbers
    )


def refusal(operator, **options):
    """The single line of an operator's error message."""
    with pytest.raises(RuntimeError) as refused:
        operator(**options)
    lines = str(refused.value).strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def save_and_open(path):
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))


def new_file():
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)


def bring(path, name, *, link):
    """Append or link an object from a file into an empty scene."""
    new_file()
    with bpy.data.libraries.load(str(path), link=link) as (_, wanted):
        wanted.objects = [name]
    brought = bpy.data.objects[name]
    bpy.context.scene.collection.objects.link(brought)
    bpy.context.view_layer.update()
    return brought


def override(path, name):
    """An editable library override of an object in a file, active in an empty scene."""
    own = bring(path, name, link=True).override_create(remap_local_usages=True)
    own.override_library.is_system_override = False
    scenes.make_active(own)
    return own


def the_override():
    """The only library override in the file."""
    (own,) = [thing for thing in bpy.data.objects if thing.override_library]
    return own


def quaternion_of(bone):
    """(4,) the local rotation that Blender computes from a bone's channels, by mathutils."""
    if bone.rotation_mode == "QUATERNION":
        return np.array(bone.rotation_quaternion.normalized())
    if bone.rotation_mode == "AXIS_ANGLE":
        angle, *axis = bone.rotation_axis_angle
        return np.array(Quaternion(axis, angle))
    return np.array(bone.rotation_euler.to_quaternion())


def turn(bone, quaternion):
    """Pose a bone by a quaternion, in its rotation mode."""
    rotation = Quaternion(quaternion)
    if bone.rotation_mode == "QUATERNION":
        bone.rotation_quaternion = rotation
    elif bone.rotation_mode == "AXIS_ANGLE":
        axis, angle = rotation.to_axis_angle()
        bone.rotation_axis_angle = (angle, *axis)
    else:
        bone.rotation_euler = rotation.to_euler(bone.rotation_mode)
