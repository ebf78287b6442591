"""Targets over frames, read from their curves or as Blender evaluates them."""

import time
from dataclasses import replace

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from fabrik_addon.blender.capture.import_markers import import_clip
from fabrik_addon.blender.goals.places import is_seen, sample_steps
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.settings.motion import MARKER_NAME
from fabrik_addon.core.errors import TargetError
from fabrik_addon.markers.clip import Clip
from fabrik_addon.markers.steps import finish

pytestmark = pytest.mark.usefixtures("clean_scene")

FRAMES = np.arange(1.0, 31.0)


def new_object(name="Target", data=None):
    target = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(target)
    return target


def animate(target, path="location", frames=FRAMES, values=None, seed=0):
    """Key a property of three numbers; without values, with a smooth random motion."""
    values = np.random.default_rng(seed).normal(size=(len(frames), 3)) if values is None else values
    action = keyframes.current_or_new_action(target, target.name)
    keyframes.write_curves(action, target, path, frames, values, "Group")
    return np.array(values)


def matrices_of(target, frames):
    """(F, 4, 4) world matrices of an object."""
    return finish(sample_steps(bpy.context.scene, (), [(target, "")], frames))[1][:, 0]


def sample_targets(scene, targets, frames, *, recorded=False):
    """(F, E, 3) world positions of targets."""
    return finish(sample_steps(scene, targets, (), frames, recorded=recorded))[0]


def shown(target, frames):
    """(F, 3) world positions as Blender evaluates them."""
    scene, result = bpy.context.scene, []
    for frame in frames:
        scene.frame_set(int(np.floor(frame)), subframe=float(frame % 1.0))
        graph = bpy.context.evaluated_depsgraph_get()
        result.append(tuple(target.evaluated_get(graph).matrix_world.translation))
    return np.array(result)


def sampled(target, frames=FRAMES, bone=""):
    return sample_targets(bpy.context.scene, [(target, bone)], frames)[:, 0]


def make_static(target):
    target.location, target.delta_location = (1.0, 2.0, 3.0), (0.5, 0.0, 0.0)


def make_keyed(target):
    animate(target)
    target.delta_location = (0.5, 0.0, -1.0)


def make_bezier(target):
    animate(target, frames=np.arange(1.0, 32.0, 6.0))
    for curve in keyframes.curves(target):
        for key in curve.keyframe_points:
            key.interpolation = "BEZIER"
        curve.update()


def make_extrapolated(target):
    animate(target, frames=np.arange(8.0, 12.0))
    for curve in keyframes.curves(target):
        curve.extrapolation = "LINEAR"


def make_one_axis(target):
    target.location = (1.0, 2.0, 3.0)
    target.keyframe_insert("location", index=1, frame=1)
    target.location.y = 4.0
    target.keyframe_insert("location", index=1, frame=30)


def make_muted(target):
    target.location = (1.0, 2.0, 3.0)
    animate(target)
    keyframes.curves(target)[0].mute = True


def make_muted_group(target):
    target.location = (1.0, 2.0, 3.0)
    animate(target)
    keyframes.curves(target)[0].group.mute = True


def make_modified(target):
    animate(target)
    keyframes.curves(target)[0].modifiers.new("NOISE").strength = 2.0


def make_delta(target):
    animate(target, "delta_location")


def make_turned(target):
    animate(target)
    animate(target, "rotation_euler", seed=1)


def make_child(target):
    parent = new_object("Parent")
    animate(parent)
    animate(parent, "rotation_euler", seed=1)
    parent.scale = (2.0, 2.0, 2.0)
    target.parent = parent
    target.matrix_parent_inverse = Matrix.Translation((1.0, 0.0, 0.0))
    animate(target, seed=2)


def make_constrained(target):
    other = new_object("Other")
    animate(other)
    target.constraints.new("COPY_LOCATION").target = other


def make_driven(target):
    driver = target.driver_add("location", 1).driver
    driver.expression = "frame * 0.25"


def make_layered(target):
    animate(target)
    animation = target.animation_data
    strip = animation.nla_tracks.new().strips.new("Strip", 1, animation.action)
    strip.frame_end = 60.0
    animation.action = None


def make_influenced(target):
    animate(target)
    target.animation_data.action_influence = 0.5


KINDS = (
    make_static,
    make_keyed,
    make_bezier,
    make_extrapolated,
    make_one_axis,
    make_muted,
    make_muted_group,
    make_modified,
    make_delta,
    make_turned,
    make_child,
    make_constrained,
    make_driven,
    make_layered,
    make_influenced,
)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("offset", [0.0, 0.4])
def test_samples_agree_with_blender(make, offset):
    target = new_object()
    make(target)
    frames = FRAMES[::3] + offset

    positions = sampled(target, frames)

    np.testing.assert_allclose(positions, shown(target, frames), atol=1e-5)


def test_several_targets_keep_their_order():
    targets = [new_object(str(index)) for index in range(len(KINDS))]
    for make, target in zip(KINDS, targets, strict=True):
        make(target)

    together = sample_targets(bpy.context.scene, [(target, "") for target in targets], FRAMES)

    assert together.shape == (30, len(KINDS), 3)
    for place, target in enumerate(targets):
        np.testing.assert_array_equal(together[:, place], sampled(target))


def new_rig(name="Rig"):
    rig = new_object(name, bpy.data.armatures.new(name))
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for index in range(2):
        bone = rig.data.edit_bones.new("ab"[index])
        bone.head, bone.tail = (0.0, 0.0, index), (0.0, 0.0, index + 1.0)
        bone.parent = rig.data.edit_bones["a"] if index else None
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def test_a_target_bone_of_another_rig_is_sampled_at_its_head():
    parent, rig = new_object("Parent"), new_rig()
    animate(parent)
    rig.parent, rig.scale, rig.rotation_euler = parent, (2.0, 2.0, 2.0), (0.3, 0.4, 0.5)
    turns = np.random.default_rng(3).normal(size=(30, 4))
    action = keyframes.new_action(rig, "Rig")
    keyframes.write_curves(action, rig, 'pose.bones["a"].rotation_quaternion', FRAMES, turns, "a")

    positions = sampled(rig, FRAMES, "b")

    for frame, position in zip(FRAMES, positions, strict=True):
        bpy.context.scene.frame_set(int(frame))
        np.testing.assert_allclose(position, rig.matrix_world @ rig.pose.bones["b"].head, atol=1e-5)
    assert np.ptp(positions, axis=0).min() > 0.1


def test_a_missing_bone_is_named():
    rig, empty = new_rig(), new_object("Empty")

    with pytest.raises(TargetError, match="'Rig' has no bone 'c'"):
        sampled(rig, FRAMES, "c")
    with pytest.raises(TargetError, match="'Empty' has no bone 'a'"):
        sampled(empty, FRAMES, "a")


def random_gaps(seed, frames=40, markers=6):
    """A clip in which markers appear and disappear; one marker is never seen, and one always."""
    rng = np.random.default_rng(seed)
    positions = rng.normal(size=(frames, markers, 3))
    positions[rng.random((frames, markers)) < np.linspace(0.0, 1.0, markers)] = np.nan
    return Clip(tuple("ABCDEF"[:markers]), 100.0, positions, up_axis="Z", source="gaps.trc")


def markers_of(collection):
    return [(empty, "") for empty in collection.objects]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("parented", [False, True])
def test_samples_of_a_clip_have_its_gaps(seed, parented):
    clip = random_gaps(seed)
    collection = import_clip(bpy.context, clip, timing="KEEP_FRAMES", start_frame=-3)
    parent = new_object("Parent")
    for empty in collection.objects:
        empty.parent = parent if parented else None

    positions = sample_targets(bpy.context.scene, markers_of(collection), np.arange(-3.0, 37.0))

    np.testing.assert_allclose(positions, clip.positions, atol=1e-5)


@pytest.mark.parametrize("rate", [24.0, 100.0, 99.9, 30.0, 10.0])
def test_gaps_are_kept_when_a_clip_is_resampled(rate):
    """At any two rates, a marker is seen between two successive samples, but not next to a missing one."""
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = 24, 1.0
    positions = np.tile(np.arange(200.0)[:, None, None], (1, 1, 3))
    missing = np.random.default_rng(5).random(200) < 0.2
    positions[missing] = np.nan
    clip = Clip(("A",), rate, positions, up_axis="Z", source="gaps.trc")
    collection = import_clip(bpy.context, clip, timing="KEEP_TIME", start_frame=1000)

    frames = np.arange(990.0, 1000.0 + 200.0 * 24.0 / rate + 10.0)
    found = sample_targets(scene, markers_of(collection), frames)[:, 0, 0]

    sample = (frames - 1000.0) * rate / 24.0
    for where, value in zip(sample, found, strict=True):
        near = round(where)
        around = [near] if abs(where - near) < 1e-3 else [int(np.floor(where)), int(np.floor(where)) + 1]
        if all(0 <= place < 200 and not missing[place] for place in around):
            assert value == pytest.approx(where, abs=2e-3)
        else:
            assert np.isnan(value)


def test_a_marker_without_its_action_is_a_plain_object():
    collection = import_clip(bpy.context, random_gaps(0))
    empty = collection.objects[3]
    empty.animation_data_clear()
    empty.location = (1.0, 2.0, 3.0)

    np.testing.assert_allclose(sampled(empty), np.tile((1.0, 2.0, 3.0), (30, 1)))


def test_a_hand_animated_empty_has_no_gaps():
    target = new_object()
    animate(target, frames=np.array([1.0, 30.0]), values=[(0.0, 0.0, 0.0), (29.0, 0.0, 0.0)])

    np.testing.assert_allclose(sampled(target)[:, 0], FRAMES - 1.0, atol=1e-5)


@pytest.mark.parametrize("recorded_elsewhere", [False, True])
@pytest.mark.parametrize("rate", [24.0, 99.9, 10.0])
def test_visibility_on_single_frames_agrees_with_sampling(rate, recorded_elsewhere):
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = 24, 1.0
    collection = import_clip(bpy.context, replace(random_gaps(3), rate=rate), timing="KEEP_TIME")
    markers = markers_of(collection)
    if recorded_elsewhere:
        for empty, _ in markers:
            del empty[MARKER_NAME]
    frames = np.arange(-3.0, 105.0, 0.25)
    positions = sample_targets(scene, markers, frames, recorded=True)
    for marker, samples in zip(markers, positions.swapaxes(0, 1), strict=True):
        seen = [is_seen(marker, frame) for frame in frames]
        np.testing.assert_array_equal(seen, ~np.isnan(samples).any(axis=1))


def test_each_frame_of_the_scene_is_evaluated_only_once():
    rig, child, plain = new_rig(), new_object("Child"), new_object("Plain")
    make_child(child)
    animate(plain)
    frames = []
    bpy.app.handlers.frame_change_post.append(lambda scene, _graph: frames.append(scene.frame_current))
    try:
        targets, turning = [(child, ""), (rig, "a"), (plain, "")], [(child, ""), (rig, "a")]
        places, matrices = finish(sample_steps(bpy.context.scene, targets, turning, FRAMES))
    finally:
        bpy.app.handlers.frame_change_post.pop()

    assert frames == [*FRAMES.astype(int), bpy.context.scene.frame_current]
    np.testing.assert_allclose(matrices[:, :, :3, 3], places[:, :2], atol=1e-6)


def test_the_frame_is_restored():
    target = new_object()
    make_child(target)
    bpy.context.scene.frame_set(17, subframe=0.25)

    sampled(target)
    matrices_of(target, FRAMES)

    assert (bpy.context.scene.frame_current, bpy.context.scene.frame_subframe) == (17, 0.25)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(np.array(target.matrix_world.translation), shown(target, [17.25])[0], atol=1e-6)


def test_the_frame_is_put_back_when_a_target_fails():
    hidden, rig = new_object("Hidden"), new_rig()
    make_driven(hidden)
    hidden.hide_viewport = True
    bpy.context.scene.frame_set(17)

    with pytest.raises(TargetError, match="'Hidden' is not in the view layer or is disabled"):
        sample_targets(bpy.context.scene, [(rig, "a"), (hidden, "")], FRAMES)

    assert bpy.context.scene.frame_current == 17


def test_hidden_plain_markers_are_read():
    target = new_object()
    values = animate(target)
    target.hide_viewport = True

    np.testing.assert_allclose(sampled(target), values, atol=1e-6)


def test_plain_markers_are_read_without_a_frame_change():
    """Going to another frame would lose poses without keys."""
    target, other = new_object(), new_object("Other")
    animate(target)
    animate(other)
    bpy.context.scene.frame_set(5)
    other.location = (7.0, 7.0, 7.0)

    sampled(target)

    assert tuple(other.location) == (7.0, 7.0, 7.0)


def test_a_scene_that_is_not_current_can_be_sampled():
    target, present = new_object(), bpy.context.scene
    make_child(target)
    expected = shown(target, FRAMES)
    bpy.context.window.scene = bpy.data.scenes.new("Other")

    positions = sample_targets(present, [(target, "")], FRAMES)

    assert bpy.context.scene != present
    np.testing.assert_allclose(positions[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("make", [make_static, make_keyed, make_turned, make_child, make_constrained, make_layered])
def test_matrices_agree_with_blenders(make):
    target = new_object()
    make(target)

    matrices = matrices_of(target, FRAMES)

    for frame, matrix in zip(FRAMES, matrices, strict=True):
        bpy.context.scene.frame_set(int(frame))
        np.testing.assert_allclose(matrix, np.array(target.matrix_world), atol=1e-5)


def test_an_armature_without_object_motion_is_not_evaluated_frame_by_frame():
    rig, other = new_rig(), new_object("Other")
    rig.location = (1.0, 2.0, 3.0)
    animate(rig, 'pose.bones["a"].location')
    animate(other)
    bpy.context.scene.frame_set(5)
    other.location = (7.0, 7.0, 7.0)

    matrices = matrices_of(rig, FRAMES)

    np.testing.assert_allclose(matrices, np.tile(np.array(Matrix.Translation((1.0, 2.0, 3.0))), (30, 1, 1)))
    assert tuple(other.location) == (7.0, 7.0, 7.0)


def test_esc_stops_the_sampling_of_a_heavy_scene(clean_scene):
    """Each frame takes longer than the time between two checks, so there is a check after every four."""
    target = new_object()
    target.parent = new_object("Parent")
    slow = lambda *_: time.sleep(0.11)  # noqa: E731
    bpy.app.handlers.frame_change_pre.append(slow)
    try:
        shares = list(sample_steps(clean_scene, [(target, "")], (), range(1, 9)))
    finally:
        bpy.app.handlers.frame_change_pre.remove(slow)
    assert shares == [0.5, 1.0, 1.0]
