"""Animation curves, as Blender evaluates them."""

from functools import partial

import bpy
import numpy as np
import pytest

from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.rig.keyframes import (
    KeyframeError,
    check_action,
    current_or_new_action,
    curves,
    new_action,
    write_curves,
)

pytestmark = pytest.mark.usefixtures("clean_scene")

FRAMES = np.arange(1.0, 21.0)


def new_empty(name="Empty"):
    empty = bpy.data.objects.new(name, None)
    bpy.context.scene.collection.objects.link(empty)
    return empty


def shown(empty, frames):
    """(F, 3) locations that Blender evaluates."""
    scene, result = bpy.context.scene, []
    for frame in frames:
        scene.frame_set(int(np.floor(frame)), subframe=float(frame % 1.0))
        result.append(tuple(empty.evaluated_get(bpy.context.evaluated_depsgraph_get()).location))
    return np.array(result)


def key_state(curve, first, last):
    """All properties of the keys from one frame to another."""
    return [
        (tuple(key.co), tuple(key.handle_left), tuple(key.handle_right), key.interpolation, key.easing, key.type)
        for key in curve.keyframe_points
        if first <= key.co.x <= last
    ]


def bezier_curve(empty, frames=range(0, 50, 7)):
    """A hand-made curve on the empty's X, with keys of many kinds."""
    for frame in frames:
        empty.location.x = np.sin(frame)
        empty.keyframe_insert("location", index=0, frame=frame)
    (curve,) = curves(empty)
    for place, key in enumerate(curve.keyframe_points):
        key.interpolation = ("BEZIER", "CONSTANT", "BACK")[place % 3]
        key.handle_left_type = key.handle_right_type = "FREE"
        key.handle_left.y -= 0.3
        key.type = "EXTREME"
    curve.update()
    return curve


def test_a_new_action_animates_its_owner():
    empty, values = new_empty(), np.random.default_rng(0).normal(size=(20, 3))

    action = new_action(empty, "Walk")
    write_curves(action, empty, "location", FRAMES, values, "Root")

    assert action.name == "Walk"
    assert empty.animation_data.action == action
    np.testing.assert_allclose(shown(empty, FRAMES), values, atol=1e-6)
    np.testing.assert_allclose(shown(empty, FRAMES[:-1] + 0.5), (values[1:] + values[:-1]) / 2, atol=1e-5)


def test_curves_are_grouped_and_in_order():
    empty = new_empty()
    action = new_action(empty, "Walk")

    write_curves(action, empty, "location", FRAMES, np.zeros((20, 3)), "Root")
    write_curves(action, empty, "rotation_quaternion", FRAMES, np.zeros((20, 4)), "Root")
    write_curves(action, empty, '["share"]', FRAMES, np.arange(20.0)[:, None], "Other")

    found = list(curves(empty))
    assert [(curve.data_path, curve.array_index) for curve in found] == [
        *(("location", axis) for axis in range(3)),
        *(("rotation_quaternion", axis) for axis in range(4)),
        ('["share"]', 0),
    ]
    assert [curve.group.name for curve in found] == ["Root"] * 7 + ["Other"]
    np.testing.assert_array_equal(keyframes.keys(found[-1]), np.column_stack((FRAMES, np.arange(20.0))))


def test_written_curves_pose_the_bones():
    armature = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones.new('a "quoted" bone').tail = (0.0, 0.0, 1.0)
    bpy.ops.object.mode_set(mode="OBJECT")
    bone = armature.pose.bones[0]
    turns = np.random.default_rng(1).normal(size=(20, 4))

    action = new_action(armature, "Rig")
    write_curves(action, armature, bone.path_from_id("rotation_quaternion"), FRAMES, turns, bone.name)

    bpy.context.scene.frame_set(7)
    np.testing.assert_allclose(bone.rotation_quaternion, turns[6], atol=1e-6)


def test_keys_outside_the_range_stay_as_they_are():
    empty = new_empty()
    curve = bezier_curve(empty)
    before, after = key_state(curve, -1, 13), key_state(curve, 31, 60)
    values = np.random.default_rng(2).normal(size=(16, 3))

    action = current_or_new_action(empty, "unused")
    write_curves(action, empty, "location", np.arange(14.0, 30.0), values, "Root")

    curve = next(curve for curve in curves(empty) if curve.array_index == 0)
    assert key_state(curve, -1, 13) == before
    assert key_state(curve, 31, 60) == after
    np.testing.assert_allclose(keyframes.keys(curve)[2:18, 1], values[:, 0], atol=1e-6)
    assert (np.diff(keyframes.keys(curve)[:, 0]) > 0.0).all()
    assert {key.interpolation for key in curve.keyframe_points if 14 <= key.co.x <= 29} == {"LINEAR"}
    np.testing.assert_allclose(shown(empty, np.arange(14, 30)), values, atol=1e-6)


@pytest.mark.parametrize(("first", "last"), [(1, 20), (5, 8), (-30, -10), (60, 90), (15, 200), (-20, 100), (3, 3)])
def test_keys_inside_the_range_are_replaced(first, last):
    rng = np.random.default_rng(3)
    empty, old = new_empty(), rng.normal(size=(50, 3))
    action = new_action(empty, "Walk")
    write_curves(action, empty, "location", np.arange(50.0), old, "Root")
    frames = np.arange(first, last + 1, 2, dtype=float)
    new = rng.normal(size=(len(frames), 3))

    write_curves(action, empty, "location", frames, new, "Root")

    kept = {frame: value for frame, value in enumerate(old) if not first <= frame <= frames[-1]}
    merged = sorted({**kept, **dict(zip(frames, new, strict=True))}.items())
    expected = np.array([(frame, *value) for frame, value in merged])
    for curve in curves(empty):
        np.testing.assert_allclose(keyframes.keys(curve), expected[:, [0, 1 + curve.array_index]], atol=1e-6)


def test_fractional_keys_inside_the_range_are_replaced_too():
    empty = new_empty()
    action = new_action(empty, "Walk")
    write_curves(action, empty, "location", [0.5, 1.4, 1.6, 2.2, 3.5], np.ones((5, 3)), "Root")

    write_curves(action, empty, "location", [1.0, 2.0, 3.0], np.zeros((3, 3)), "Root")

    for curve in curves(empty):
        np.testing.assert_allclose(keyframes.keys(curve)[:, 0], [0.5, 1.0, 2.0, 3.0, 3.5])


def test_no_frames_make_curves_without_keys():
    empty = new_empty()
    empty.location = (1.0, 2.0, 3.0)

    write_curves(new_action(empty, "Walk"), empty, "location", [], np.empty((0, 3)), "Root")

    assert [len(curve.keyframe_points) for curve in curves(empty)] == [0, 0, 0]
    np.testing.assert_allclose(shown(empty, [5.0]), [(1.0, 2.0, 3.0)])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_refused_before_anything_is_written(bad):
    empty = new_empty()
    action = new_action(empty, "Walk")

    with pytest.raises(KeyframeError, match="key of location in action 'Walk'"):
        write_curves(action, empty, "location", FRAMES, np.full((20, 3), bad), "Root")

    assert list(curves(empty)) == []


def test_the_previous_action_is_kept_in_the_file():
    empty = new_empty()
    bezier_curve(empty)
    old = empty.animation_data.action

    new_action(empty, "Walk")

    assert old.users == 1
    assert old.use_fake_user


def test_an_action_that_others_use_gets_no_extra_user():
    empty, other = new_empty(), new_empty()
    bezier_curve(empty)
    old = empty.animation_data.action
    other.animation_data_create().action = old

    new_action(empty, "Walk")

    assert not old.use_fake_user


def test_a_copy_of_the_current_action_does_not_change_it():
    empty = new_empty()
    action = new_action(empty, "Walk")
    write_curves(action, empty, "location", FRAMES, np.ones((20, 3)), "Root")
    write_curves(action, empty, "scale", FRAMES, np.full((20, 3), 2.0), "Root")

    copy = new_action(empty, "Baked", without={"location"})
    write_curves(copy, empty, "location", FRAMES, np.full((20, 3), 5.0), "Root")

    assert empty.animation_data.action == copy
    assert copy.name == "Baked"
    assert [curve.data_path for curve in curves(empty)] == ["scale"] * 3 + ["location"] * 3
    np.testing.assert_allclose(shown(empty, [3.0]), [(5.0, 5.0, 5.0)])
    empty.animation_data.action = action
    empty.animation_data.action_slot = action.slots[0]
    assert action.use_fake_user
    assert [curve.data_path for curve in curves(empty)] == ["location"] * 3 + ["scale"] * 3
    np.testing.assert_allclose(shown(empty, [3.0]), [(1.0, 1.0, 1.0)])


def test_a_new_action_without_a_current_one_is_empty():
    empty = new_empty()

    assert new_action(empty, "Baked", without={"location"}) == empty.animation_data.action
    assert list(curves(empty)) == []


def test_an_owner_without_an_action_gets_a_new_one():
    empty = new_empty()

    action = current_or_new_action(empty, "Walk")
    write_curves(action, empty, "location", FRAMES, np.ones((20, 3)), "Root")

    assert action.name == "Walk"
    np.testing.assert_allclose(shown(empty, [3.0]), np.ones((1, 3)))


def test_the_current_action_is_used():
    empty = new_empty()
    bezier_curve(empty)

    assert current_or_new_action(empty, "unused") == empty.animation_data.action
    assert "unused" not in bpy.data.actions


def test_the_slot_of_another_object_is_not_changed():
    empty, other = new_empty(), new_empty("Other")
    bezier_curve(other)
    theirs = key_state(curves(other)[0], -1, 60)
    empty.animation_data_create().action = other.animation_data.action
    empty.animation_data.action_slot = None

    action = current_or_new_action(empty, "unused")
    write_curves(action, empty, "location", FRAMES, np.ones((20, 3)), "Root")

    assert action == other.animation_data.action
    assert empty.animation_data.action_slot != other.animation_data.action_slot
    assert [key_state(curve, -1, 60) for curve in curves(other)] == [theirs]
    np.testing.assert_allclose(shown(empty, [3.0]), np.ones((1, 3)))


def test_an_action_with_an_unassigned_slot_gets_it_back():
    empty = new_empty()
    action = new_action(empty, "Walk")
    slot = empty.animation_data.action_slot
    empty.animation_data.action_slot = None

    assert list(curves(empty)) == []
    assert current_or_new_action(empty, "unused") == action
    assert empty.animation_data.action_slot == slot


def test_there_are_no_curves_without_an_action():
    empty = new_empty()
    assert list(curves(empty)) == []

    empty.animation_data_create()
    assert list(curves(empty)) == []


def linked(path, kind, name):
    """A data-block of a saved file as a link into an empty one."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        setattr(wanted, kind, [name])
    return getattr(wanted, kind)[0]


def test_a_linked_action_is_refused_by_name(tmp_path):
    empty = new_empty()
    bpy.data.libraries.write(str(tmp_path / "walk.blend"), {new_action(empty, "Walk")})
    action = linked(tmp_path / "walk.blend", "actions", "Walk")
    empty = new_empty()
    empty.animation_data_create().action = action

    with pytest.raises(KeyframeError, match="'Walk' is linked from another file"):
        current_or_new_action(empty, "unused")
    with pytest.raises(KeyframeError, match="'Walk' is linked from another file"):
        check_action(empty, new=False)
    check_action(empty, new=True)
    assert new_action(empty, "Baked", without=()).library is None


def test_a_linked_owner_is_refused_by_name(tmp_path):
    bpy.data.libraries.write(str(tmp_path / "empty.blend"), {new_empty()})
    owner = linked(tmp_path / "empty.blend", "objects", "Empty")

    for make in (new_action, partial(new_action, without=()), current_or_new_action):
        with pytest.raises(KeyframeError, match="'Empty' is linked from another file"):
            make(owner, "Walk")
    assert "Walk" not in bpy.data.actions


def test_tweak_mode_is_refused_by_name():
    empty = new_empty()
    bezier_curve(empty)
    animation = empty.animation_data
    strip = animation.nla_tracks.new().strips.new("Walk", 1, animation.action)
    animation.action = None
    strip.select = True
    animation.nla_tracks.active = animation.nla_tracks[0]
    animation.use_tweak_mode = True

    with pytest.raises(KeyframeError, match="'Empty' has an NLA strip in tweak mode"):
        new_action(empty, "Walk")


def test_curves_survive_saving(tmp_path):
    empty, values = new_empty(), np.random.default_rng(5).normal(size=(20, 3))
    write_curves(new_action(empty, "Walk"), empty, "location", FRAMES, values, "Root")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "walk.blend"))

    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "walk.blend"))

    np.testing.assert_allclose(shown(bpy.data.objects["Empty"], FRAMES), values, atol=1e-6)


FRACTIONS = (0.0, 1.0, 1.75, 4.5, 8.0, 11.25, 12.0, 20.0)


def places_on(thing, frames):
    """Positions of an object on frames, as Blender plays it."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(int(frame), subframe=frame - int(frame))
        found.append(tuple(thing.matrix_world.translation))
    return np.array(found)


@pytest.mark.parametrize("extrapolation", ["NOTHING", "HOLD", "HOLD_FORWARD"])
@pytest.mark.parametrize(
    ("influence", "blend_type"), [(1.0, "REPLACE"), (0.3, "REPLACE"), (0.6, "ADD"), (1.0, "SUBTRACT")]
)
def test_an_action_plays_as_before_once_it_is_a_strip(clean_scene, influence, blend_type, extrapolation):
    """The action is below a new strip of other bones; its influence and blending matter only above another strip."""
    thing = bpy.data.objects.new("Thing", None)
    clean_scene.collection.objects.link(thing)
    below = keyframes.new_action(thing, "Below")
    keyframes.write_curves(below, thing, "location", [-5.0, 30.0], [(3.0, -1.0, 0.5), (-2.0, 4.0, 1.0)], "Location")
    thing.animation_data.action = None
    keyframes.add_strip(thing, below)
    present = keyframes.new_action(thing, "Present")
    keyframes.write_curves(present, thing, "location", [1.5, 11.25], [(0.5, 2.0, 1.0), (4.0, 1.0, 3.0)], "Location")
    animation = thing.animation_data
    animation.action_influence, animation.action_blend_type = influence, blend_type
    animation.action_extrapolation = extrapolation
    before = places_on(thing, FRACTIONS)
    turning = keyframes.new_strip_action(thing, "Turning")
    keyframes.write_curves(turning, thing, "rotation_euler", [0.5, 9.0], [(0, 0, 0), (1, 1, 1)], "Rotation")
    keyframes.add_strip(thing, turning)
    strips = {strip.name: strip for track in animation.nla_tracks for strip in track.strips}
    assert (strips["Present"].frame_start, strips["Turning"].frame_start) == (1.5, 0.5)
    np.testing.assert_allclose(places_on(thing, FRACTIONS), before, atol=1e-6)
