"""A drag over time on an NLA layer: the recording does not change, and the layer can be muted or blended."""

import bpy
import numpy as np
import pytest
from support import takes
from support.dragging import world
from support.layouts import drawn
from support.takes import go_to

from fabrik_addon.blender.edit.take import PathKeeper
from fabrik_addon.blender.ui.overlays import drawing
from fabrik_addon.blender.ui.panels.motion import FABRIK_PT_edit

FRAMES = np.arange(1, 82)
HERE, SPREAD = 41, 20
UP = np.array((0.0, 0.0, 0.1))

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def walk():
    rig = takes.walking_human(81)
    rig.fabrik.drag.spread_to = {"LAYER"}
    go_to(HERE)
    return rig


def drag(**options):
    options = {"bone": "hand.R", "translation": UP, "spread": SPREAD, **options}
    assert bpy.ops.fabrik.drag(**options) == {"FINISHED"}


def hand(rig):
    go_to(HERE)
    return world(rig, "hand.R")


def strip_of(rig):
    return rig.animation_data.nla_tracks[-1].strips[0]


def test_a_layer_has_an_influence(walk):
    keys, was, before = takes.curves(walk), world(walk, "hand.R"), takes.poses(walk, FRAMES)
    recording = walk.animation_data.action
    drag()
    assert walk.animation_data.action is None
    assert walk.animation_data.nla_tracks[0].strips[0].action == recording
    assert np.linalg.norm(hand(walk) - was - UP) < 1e-4
    on = takes.poses(walk, FRAMES)
    outside = np.abs(FRAMES - HERE) >= SPREAD
    assert np.abs(on[outside] - before[outside]).max() < 1e-6
    strip_of(walk).fcurves[0].keyframe_points[0].co[1] = 0.5
    half = hand(walk) - was
    assert 0.04 < half[2] < 0.06
    walk.animation_data.nla_tracks[-1].mute = True
    assert np.linalg.norm(hand(walk) - was) < 1e-6
    walk.animation_data.nla_tracks[-1].mute = False
    walk.animation_data.action = recording
    for path, now in takes.curves(walk).items():
        assert np.array_equal(now, keys[path])


def sliders():
    """The number of sliders for the influence of layers that the panel draws."""
    return [name for _, _, name in drawn(FABRIK_PT_edit).controls].count("fabrik_influences_of_layers")


def test_the_slider_of_a_layer_goes_from_0_to_1(walk):
    """Fixed: it changed the value of a key, which has no range, so a short drag of the mouse set it to -10,000."""
    was = world(walk, "hand.R")
    drag()
    drag(bone="hand.L")
    walk.animation_data.nla_tracks[-1].name = "Kept"
    drag()
    influences = walk.fabrik_influences_of_layers
    assert list(influences[:3]) == [1.0, 1.0, 1.0]
    assert sliders() == 2
    influences[1] = -3.0
    assert list(influences[:3]) == [1.0, 0.0, 1.0]
    assert strip_of(walk).fcurves[0].keyframe_points[0].co[1] == 0.0
    assert np.linalg.norm(hand(walk) - was - UP) < 2e-4
    influences[1] = 0.5
    assert 0.04 < (hand(walk) - was - UP)[2] < 0.06
    influences[1] = 7.0
    assert strip_of(walk).fcurves[0].keyframe_points[0].co[1] == 1.0
    strip_of(walk).fcurves[0].keyframe_points.clear()
    assert sliders() == 1
    influences[:2] = 0.25, 0.75
    assert list(influences[:2]) == [0.25, 1.0]


def test_a_second_edit_is_added_to_the_same_layer(walk):
    was, before = world(walk, "hand.R"), takes.poses(walk, FRAMES)
    drag()
    go_to(HERE)
    drag()
    assert len(walk.animation_data.nla_tracks) == 2
    assert np.linalg.norm(hand(walk) - was - 2.0 * UP) < 2e-4
    # Another bone, on frames that overlap in part.
    once = takes.poses(walk, FRAMES)
    later = HERE + 15
    go_to(later)
    foot = world(walk, "hand.L")
    drag(bone="hand.L", translation=-UP)
    assert len(walk.animation_data.nla_tracks) == 2
    assert np.linalg.norm(world(walk, "hand.L") - foot + UP) < 1e-4
    both = takes.poses(walk, FRAMES)
    outside = np.abs(FRAMES - later) >= SPREAD
    assert np.abs(both - once)[outside].max() < 1e-6
    assert np.abs(both - once).max() > 0.05
    outside &= np.abs(FRAMES - HERE) >= SPREAD
    assert np.abs(both - before)[outside].max() < 1e-6
    walk.animation_data.nla_tracks[-1].mute = True
    assert np.abs(takes.poses(walk, FRAMES) - before).max() < 1e-6


@pytest.mark.parametrize("kept", ["renamed", "track renamed", "strip renamed", "muted", "half"])
def test_a_changed_layer_is_kept_and_the_next_edit_adds_a_new_one(walk, kept):
    drag()
    strip = strip_of(walk)
    if kept == "renamed":
        strip.action.name = "Wave"
    elif kept == "track renamed":
        walk.animation_data.nla_tracks[-1].name = "Wave"
    elif kept == "strip renamed":
        strip.name = "Wave"
    elif kept == "muted":
        strip.mute = True
    else:
        strip.fcurves[0].keyframe_points[0].co[1] = 0.5
    was = hand(walk)
    drag()
    assert len(walk.animation_data.nla_tracks) == 3
    assert np.linalg.norm(hand(walk) - was - UP) < 2e-4


def test_trails_include_nla_strips(walk):
    view = walk.fabrik
    view.show_trails, view.trail_frames = True, 30
    assert PathKeeper().paths(walk, HERE) is not None
    drag()
    assert PathKeeper().paths(walk, HERE) is None
    paths = drawing.KEEPER.paths(walk, HERE)
    assert paths.frames.tolist() == list(range(11, 72))
    assert np.abs(paths.bones["hand.R"].tails[30] - hand(walk)).max() < 1e-5
    walk.animation_data.nla_tracks[-1].mute = True
    assert bpy.ops.fabrik.work_out_trails() == {"FINISHED"}
    lower = drawing.KEEPER.paths(walk, HERE)
    assert lower is not paths
    assert np.abs((paths.bones["hand.R"].tails - lower.bones["hand.R"].tails)[30] - UP).max() < 1e-4
    assert bpy.context.scene.frame_current == HERE
    view.show_trails = False
    with pytest.raises(RuntimeError, match="turn on Trails first"):
        bpy.ops.fabrik.work_out_trails()


def test_only_the_root_and_moved_bones_are_in_the_layer(walk):
    bpy.ops.fabrik.drag(bone="hips", point="HEAD", translation=(0.0, 0.0, -0.04), spread=SPREAD)
    paths = {curve.data_path for bag in bags(strip_of(walk)) for curve in bag}
    assert any(path.endswith("location") for path in paths)
    assert not [path for path in paths if "hand" in path]


def bags(strip):
    for layer in strip.action.layers:
        for each in layer.strips:
            yield from (bag.fcurves for bag in each.channelbags)


def test_actions_that_cannot_be_layered_do_not_change(walk):
    for bone in walk.pose.bones:
        bone.rotation_mode = "AXIS_ANGLE"
    for bone in walk.pose.bones:
        bone.keyframe_insert("rotation_axis_angle", frame=1)
        bone.keyframe_insert("rotation_axis_angle", frame=81)
    action = walk.animation_data.action
    with pytest.raises(RuntimeError, match="to quaternion or Euler"):
        drag(translation=(0.0, 0.05, 0.0))
    assert walk.animation_data.action == action
    assert not len(walk.animation_data.nla_tracks)


def test_a_hold_below_a_layer_is_refused(walk):
    """Recording and layer have curves of the same bones: which of them to change is unknown."""
    drag()
    was = takes.poses(walk, FRAMES)
    with pytest.raises(RuntimeError, match="several NLA strips with keys of the same bones: mute all but one"):
        bpy.ops.fabrik.add_hold(bone="hand.L", first=20, last=30, ease=5)
    assert len(walk.fabrik.holds) == 0
    assert np.array_equal(takes.poses(walk, FRAMES), was)
    walk.animation_data.nla_tracks[-1].mute = True
    assert bpy.ops.fabrik.add_hold(bone="hand.L", first=20, last=30, ease=5) == {"FINISHED"}
