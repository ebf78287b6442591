"""The contents of the limits overlay, and when it is shown, without the drawing itself."""

import bpy
import numpy as np
import pytest
from support import scenes
from support.limited import write_limit

from fabrik_addon.blender.ui.overlays import handlers as drawing_handlers
from fabrik_addon.blender.ui.overlays import limits as overlay
from fabrik_addon.blender.ui.overlays.limits import ShapeKind
from fabrik_addon.core import Ball, Hinge


@pytest.fixture
def rig(clean_scene):
    """A posed, rotated and scaled rig in Pose mode with some limits, the overlay on, and no selection."""
    made = scenes.place(scenes.make_rig(mode="MIXED"), scale=2.5)
    write_limit(made.pose.bones["forearm.L"], Hinge("X", -0.2, 2.0))
    write_limit(made.pose.bones["upper_arm.L"], Ball((0.5, 1.5, 1.0, 0.4), (-1.0, 1.0)))
    write_limit(made.pose.bones["shin.R"], Hinge("Z", 0.0, 2.0))
    turns, _ = scenes.smooth_motion(made, 3, seed=4)
    scenes.pose(made, turns[1])
    scenes.make_active(made)
    bpy.ops.object.mode_set(mode="POSE")
    select(made)
    clean_scene.fabrik_show_limits = True
    return made


def select(rig, *names, active=None):
    """Select bones, and make one active."""
    for bone in rig.pose.bones:
        holder = bone if hasattr(bone, "select") else bone.bone
        holder.select = bone.name in names
    rig.data.bones.active = rig.data.bones[active] if active else None


def shown():
    return [bone.name for bone in overlay.shown_bones(bpy.context)]


def test_the_active_bone_comes_first_and_then_the_selected_ones_that_have_limits(rig):
    select(rig, "forearm.L", "upper_arm.L", "head", active="upper_arm.L")
    assert shown() == ["upper_arm.L", "forearm.L"]
    select(rig, "forearm.L", active="shin.R")
    assert shown() == ["shin.R", "forearm.L"]
    select(rig)
    assert shown() == []


def test_nothing_is_drawn_if_the_overlay_is_off_or_outside_pose_mode(rig, clean_scene):
    assert drawing_handlers.shows_limits(bpy.context)
    clean_scene.fabrik_show_limits = False
    assert not drawing_handlers.shows_limits(bpy.context)
    clean_scene.fabrik_show_limits = True
    bpy.ops.object.mode_set(mode="OBJECT")
    assert not drawing_handlers.shows_limits(bpy.context)
    bpy.context.view_layer.objects.active = scenes.empty_at((0, 0, 0))
    assert not drawing_handlers.shows_limits(bpy.context)
    bpy.context.view_layer.objects.active = None
    assert not drawing_handlers.shows_limits(bpy.context)


def test_another_rig_that_is_posed_at_the_same_time_is_not_shown(rig):
    bpy.ops.object.mode_set(mode="OBJECT")
    other = scenes.make_rig(name="Other")
    write_limit(other.pose.bones["head"], Ball(0.5))
    rig.select_set(True)
    other.select_set(True)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    select(other, "head")
    select(rig, "forearm.L", active="forearm.L")
    assert shown() == ["forearm.L"]


def test_the_overlay_is_off_at_first(clean_scene):
    assert clean_scene.fabrik_show_limits is False


def test_limits_are_relative_to_the_rest_frame_under_the_posed_parent(rig):
    """For any pose, inherited rotation or not: the pose is that frame rotated by the channels."""
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["head"].use_inherit_rotation = False
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.view_layer.update()
    for bone in rig.pose.bones:
        posed = overlay.carried_frame(bone) @ bone.matrix_basis.to_3x3().to_4x4()
        assert np.array(posed) == pytest.approx(np.array(bone.matrix), abs=1e-4), bone.name


def test_shapes_are_in_the_world_where_the_bone_is(rig):
    bone = rig.pose.bones["upper_arm.L"]
    shapes = overlay.shapes_of_bone(bone)
    (marker,) = [shape for shape in shapes if shape.kind is ShapeKind.MARKER and len(shape.vertices) > 2]
    assert marker.vertices[0] == pytest.approx(np.array(rig.matrix_world @ bone.head), abs=1e-4)
    assert marker.vertices[1] == pytest.approx(np.array(rig.matrix_world @ bone.tail), abs=1e-4)
    surface = shapes[0]
    assert np.linalg.norm(surface.vertices - marker.vertices[0], axis=1) == pytest.approx(2.5 * bone.length, rel=1e-4)


def test_a_limit_binds_if_the_pose_exceeds_it(rig):
    bone = rig.pose.bones["forearm.L"]
    bone.rotation_mode = "XYZ"
    for angle, binds in ((1.0, False), (2.0, True), (2.5, True), (-0.2, True), (0.0, False)):
        bone.rotation_euler = (angle, 0.0, 0.0)
        bpy.context.view_layer.update()
        assert {shape.binds for shape in overlay.shapes_of_bone(bone)} == {binds}, angle


def test_poses_after_constraints_are_drawn(rig):
    bone = rig.pose.bones["forearm.L"]
    bone.rotation_mode, bone.rotation_euler = "XYZ", (2.5, 0.0, 0.0)
    held = bone.constraints.new("LIMIT_ROTATION")
    held.owner_space, held.use_limit_x, held.max_x = "LOCAL", True, 1.0
    bpy.context.view_layer.update()
    assert not any(shape.binds for shape in overlay.shapes_of_bone(bone))


def test_free_bones_and_invalid_limits_have_no_shapes(rig):
    assert overlay.shapes_of_bone(rig.pose.bones["head"]) == []
    rig.pose.bones["forearm.L"]["fabrik_hinge"] = (2.0, -2.0)
    assert overlay.shapes_of_bone(rig.pose.bones["forearm.L"]) == []


def test_a_drawing_consists_of_vertices_edges_and_colors(rig):
    bones = [rig.pose.bones[name] for name in ("upper_arm.L", "forearm.L")]
    bones[1].rotation_mode, bones[1].rotation_euler = "XYZ", (1.0, 0.0, 0.0)
    bpy.context.view_layer.update()
    ranges, markers = overlay.gather(bones, bones[0])
    for drawing in (ranges, markers):
        assert min(drawing) == 0.0, "there are triangles"
        for width, (points, colors) in drawing.items():
            assert len(points) == len(colors) > 0
            assert len(points) % (2 if width else 3) == 0
            assert ((colors >= 0) & (colors <= 1)).all()
    assert np.unique(ranges[0.0][1][:, 3]) == pytest.approx([0.07, 0.14]), "the active bone's surfaces stand out"


def test_active_limits_are_red_and_thick(rig):
    bone = rig.pose.bones["forearm.L"]
    bone.rotation_mode = "XYZ"
    looks = []
    for angle in (1.0, 2.5):
        bone.rotation_euler = (angle, 0.0, 0.0)
        bpy.context.view_layer.update()
        ranges, _ = overlay.gather([bone], bone)
        looks.append((max(ranges), *ranges[0.0][1][0, :3]))
    (thin, red, _, blue), (thick, more_red, _, less_blue) = looks
    assert thick >= 2 * thin
    assert red < blue
    assert more_red > less_blue


def test_nothing_selected_is_an_empty_drawing(rig):
    assert overlay.gather([], None) == ({}, {})


def test_the_switch_is_in_the_popover_for_bones(clean_scene):
    assert bpy.types.VIEW3D_PT_overlay_bones.is_extended()
