"""Trails: their points, when they are recalculated, and their drawing."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from support import takes
from support.dragging import world
from support.takes import go_to

from fabrik_addon.blender.edit.take import PathKeeper
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.ui.overlays import drawing
from fabrik_addon.blender.ui.overlays.drawing import HELD, KEY, TICK, TRAIL, joined, trail_lines, trails

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def walk():
    rig = takes.walking_human(41)
    go_to(21)
    return rig


def select(rig, *names):
    for bone in rig.pose.bones:
        (bone if hasattr(bone, "select") else bone.bone).select = bone.name in names
    rig.data.bones.active = rig.data.bones[names[0]]


def test_paths_agree_with_blender(walk):
    paths = PathKeeper().paths(walk, 21)
    assert paths.frames.tolist() == list(range(1, 42))
    posed = takes.poses(walk, paths.frames)
    lengths = np.array([bone.length for bone in walk.pose.bones])
    found = [paths.bones[bone.name] for bone in walk.pose.bones]
    assert [path.length for path in found] == pytest.approx(lengths, abs=1e-6)
    ends = posed[..., :3, 3] + lengths[:, None] * posed[..., :3, 1]
    assert np.abs(np.stack([path.tails for path in found], axis=1) - ends).max() < 1e-5


def test_paths_are_cached_until_a_key_changes(walk):
    keeper = PathKeeper()
    first = keeper.paths(walk, 21)
    assert keeper.paths(walk, 30) is first
    curve = next(curve for curve in keyframes.curves(walk) if "forearm.R" in curve.data_path)
    curve.keyframe_points[10].co[1] += 0.3
    second = keeper.paths(walk, 30)
    assert np.abs(second.bones["hand.R"].tails - first.bones["hand.R"].tails).max() > 1e-3
    curve.keyframe_points[10].co[1] -= 0.3
    third = keeper.paths(walk, 34)
    assert third is not second
    assert all(np.array_equal(path.tails, first.bones[name].tails) for name, path in third.bones.items())


def test_a_rig_without_keys_has_no_paths(clean_scene):
    rig = takes.active_human()
    assert PathKeeper().paths(rig, 1) is None
    rig.fabrik.show_trails = True
    assert trails(bpy.context, rig) == []


@pytest.mark.parametrize("layered", [False, True])
def test_a_rig_that_cannot_be_read_has_no_trails(walk, layered):
    """Fixed: each redraw or each call of the timer raised an error."""
    select(walk, "hand.R")
    walk.fabrik.show_trails = True
    if layered:
        animation = walk.animation_data
        animation.nla_tracks.new().strips.new("Walk", 1, animation.action)
        animation.action = None
    walk.scale = (1.0, 2.0, 1.0)
    bpy.context.view_layer.update()
    assert trails(bpy.context, walk) == []
    drawing.refresh_trails()
    assert trails(bpy.context, walk) == []


def lines_of_trails(rig):
    """Width of lines to their (2 L, 3) ends."""
    return {width: ends for width, (ends, _) in joined(trail_lines(bpy.context, rig)).items()}


def test_keys_have_dots_and_other_frames_ticks():
    rig = takes.walking_human(41, step=8)
    go_to(21)
    select(rig, "hand.R")
    rig.fabrik.show_trails, rig.fabrik.trail_frames = True, 12
    lines = lines_of_trails(rig)
    assert {width: len(ends) for width, ends in lines.items()} == {TRAIL: 2 * 24, TICK: 4 * 21, KEY: 4 * 4}
    middle = lines[TRAIL].reshape(-1, 2, 3)[12, 0]
    assert np.abs(middle - world(rig, "hand.R")).max() < 1e-5


def test_held_frames_are_drawn_on_their_trail(walk):
    select(walk, "hand.R")
    walk.fabrik.show_trails = True
    assert HELD not in lines_of_trails(walk)
    bpy.ops.fabrik.add_hold(bone="hand.R", first=15, last=25, ease=5)
    ends = lines_of_trails(walk)[HELD]
    assert len(ends) == 2 * 10 + 2 * 4
    assert np.linalg.norm(ends - world(walk, "hand.R"), axis=1).max() < 0.02


def test_trails_are_drawn_only_if_enabled_and_for_selected_bones(walk):
    select(walk, "hand.R", "hand.L")
    assert not trails(bpy.context, walk)
    walk.fabrik.show_trails = True
    points = {trail.bone: trail.points for trail in trails(bpy.context, walk)}
    assert set(points) == {"hand.R", "hand.L"}
    assert np.abs(points["hand.R"][20] - world(walk, "hand.R")).max() < 1e-5


def test_another_file_has_its_own_trail(tmp_path):
    """Fixed: a rig of the same name in a new file showed the trail of the old one."""
    rig = takes.walking_human(41)
    animation = rig.animation_data
    action, slot = animation.action, animation.action_slot
    animation.action = None
    animation.nla_tracks.new().strips.new("Walk", 1, action).action_slot = slot
    select(rig, "hand.R")
    rig.fabrik.show_trails = True
    bpy.ops.fabrik.work_out_trails()
    assert trails(bpy.context, rig)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "walk.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "walk.blend"))
    assert not trails(bpy.context, bpy.data.objects["Rig"])


@pytest.mark.parametrize("bone", ["foot.L", "hand.R"])
def test_the_current_frame_is_dragged_where_the_trail_passes_the_same_point_again(walk, bone):
    """Fixed: over a planted foot, a drag changed another frame of its contact, and the pose in the viewport stayed."""
    select(walk, bone)
    walk.fabrik.show_trails = True
    view = SimpleNamespace(on_screen=lambda place: 800.0 * place[[1, 2]])  # from the side
    # A Blender without windows has a scale of 0.
    context = SimpleNamespace(
        **bpy.context.copy() | {"preferences": SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))}
    )
    ((_, frames, points, *_),) = trails(bpy.context, walk)
    for frame in range(5, 37):
        go_to(frame)
        mouse = np.rint(view.on_screen(world(walk, bone)))
        assert drawing.nearest_on_trails(context, walk, view, mouse) is None, frame
    farthest = int(np.argmax(np.linalg.norm(points - world(walk, bone), axis=1)))
    mouse = np.rint(view.on_screen(points[farthest]))
    name, found = drawing.nearest_on_trails(context, walk, view, mouse)
    assert name == bone
    assert np.linalg.norm(points[frames == found] - points[farthest]) < 3e-3
