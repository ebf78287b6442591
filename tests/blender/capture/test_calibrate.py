"""Calibration in the scene: marker positions on bones, sizes, and data that is kept or unchanged."""

import re

import bpy
import numpy as np
import pytest
from support import scenes
from support.steps import at_once

from fabrik_addon.blender.bake.bake import bake
from fabrik_addon.blender.capture.calibrate import calibrate_markers_steps
from fabrik_addon.core.errors import FabrikError

pytestmark = pytest.mark.usefixtures("clean_scene")

FRAMES = 10

calibrate_markers = at_once(calibrate_markers_steps)


def points_of(rig):
    """(bone, point) pairs of three points about each bone, and a label for each."""
    rng = np.random.default_rng(2)
    points, labels = [], []
    for bone in rig.data.bones:
        for place in range(3):
            points.append((bone.name, tuple(rng.normal(size=3) * 0.04 + (0.0, bone.length / 2.0, 0.0))))
            labels.append(f"{bone.name}{place}")
    return points, labels


def recorded(size=1.0, seed=1, turn=0.0, **where):
    """A rig, and markers of a person of another size, with unknown positions on the bones."""
    rig = scenes.place(scenes.make_rig(), **where) if where else scenes.make_rig()
    scenes.make_active(rig)
    points, labels = points_of(rig)
    positions = scenes.record(rig, points, *scenes.smooth_motion(rig, FRAMES, seed, most=0.4, travel=0.3))
    origin = np.array(rig.matrix_world.translation)
    markers = scenes.import_positions(origin + size * (positions - origin), labels)
    rig.fabrik.root = "FREE"
    for label, (bone, point) in zip(labels, points, strict=True):
        entry = rig.fabrik.capture.markers.add()
        entry.name, entry.bone, entry.target = label, bone, markers[label]
        entry.point = "OFFSET"
        entry.offset = np.array(point) + np.random.default_rng(len(label)).normal(size=3) * 0.01
    return rig, dict(zip(labels, points, strict=True))


def offsets_off(rig, truth):
    """Distances of the stored offsets from the true ones, in meters in the rig's units."""
    markers = rig.fabrik.capture.markers
    return [np.linalg.norm(np.array(markers[name].offset) - point) for name, (_, point) in truth.items()]


@pytest.mark.one_blender
class TestOneScale:
    """The markers are made as large as the rig; the rig stays as it is."""

    @pytest.mark.parametrize("size", [1.0, 1.15])
    def test_size_and_positions_are_found(self, size):
        rig, truth = recorded(size)
        rest = [tuple(bone.head_local) for bone in rig.data.bones]
        found = calibrate_markers(bpy.context, rig, proportions="UNIFORM")
        assert found.scale == pytest.approx(1.0 / size, rel=0.03)
        assert found.rms < 0.008
        assert np.median(offsets_off(rig, truth)) < 0.012
        assert [tuple(bone.head_local) for bone in rig.data.bones] == rest
        result = bake(bpy.context, rig, frame_start=1, frame_end=FRAMES)
        assert result.report.total.rms < 0.008

    def test_the_rig_stores_the_calibration_and_the_assumed_pose(self):
        rig, _ = recorded()
        found = calibrate_markers(bpy.context, rig, proportions="UNIFORM")
        kept = rig.fabrik.capture.calibrated
        assert f"RMS {1000.0 * found.rms:.1f} mm" in kept
        assert found.pose == "MOVING"
        assert kept.endswith("no calibration pose detected")

    def test_markers_in_the_scene_are_scaled_about_the_rig(self):
        rig, _ = recorded(1.15, location=(0.5, -0.3, 0.2), turn=0.4)
        empty = rig.fabrik.capture.markers[0].target
        bpy.context.scene.frame_set(4)
        before = np.array(empty.matrix_world.translation)
        factor = calibrate_markers(bpy.context, rig, proportions="UNIFORM").scale
        bpy.context.scene.frame_set(5)
        bpy.context.scene.frame_set(4)
        origin = np.array(rig.matrix_world.translation)
        assert np.allclose(np.array(empty.matrix_world.translation), origin + factor * (before - origin), atol=1e-5)

    def test_calibrating_again_changes_little(self):
        rig, _ = recorded(1.15)
        calibrate_markers(bpy.context, rig, proportions="UNIFORM")
        assert calibrate_markers(bpy.context, rig, proportions="UNIFORM").scale == pytest.approx(1.0, abs=0.01)

    def test_pose_frame_and_selection_stay(self):
        rig, _ = recorded()
        bpy.context.scene.frame_set(7)
        rig.pose.bones["head"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
        before = scenes.digest()
        calibrate_markers(bpy.context, rig, proportions="UNIFORM")
        after = scenes.digest()
        assert after["scene"] == before["scene"]
        assert after["active"] == before["active"]
        assert after["objects"]["Rig"]["bones"] == before["objects"]["Rig"]["bones"]


@pytest.mark.one_blender
class TestOtherProportions:
    """Limbs of other lengths, a rest pose of the rig itself, and scale 1."""

    def test_as_recorded(self):
        rig, _ = recorded(1.1)
        before = scenes.digest()["actions"]
        assert calibrate_markers(bpy.context, rig, proportions="NONE").scale == 1.0
        assert scenes.digest()["actions"] == before

    def test_limbs_are_kept_and_used(self):
        rig, _ = recorded()
        calibrate_markers(bpy.context, rig, proportions="LIMBS")
        factors = {item.name: item.factor for item in rig.fabrik.capture.factors}
        assert set(factors) == set(rig.data.bones.keys())
        assert all(0.7 < factor < 1.4 for factor in factors.values())
        assert bake(bpy.context, rig, frame_start=1, frame_end=FRAMES).report.total.rms < 0.01
        calibrate_markers(bpy.context, rig, proportions="UNIFORM")
        assert not len(rig.fabrik.capture.factors)

    def test_limbs_are_the_default(self):
        """With one scale, joints of a person of other proportions are three times as far off in the median."""
        rig, _ = recorded()
        assert bpy.ops.fabrik.calibrate_markers() == {"FINISHED"}
        assert len(rig.fabrik.capture.factors) == len(rig.data.bones)

    def test_the_rig_gets_the_person_s_size(self):
        rig, _ = recorded(1.2)
        lengths = np.array([bone.length for bone in rig.data.bones])
        found = calibrate_markers(bpy.context, rig, proportions="REST")
        assert found.scale == 1.0
        now = np.array([bone.length for bone in rig.data.bones])
        assert now.sum() / lengths.sum() == pytest.approx(1.2, rel=0.05)
        assert rig.mode == "OBJECT"
        assert bake(bpy.context, rig, frame_start=1, frame_end=FRAMES).report.total.rms < 0.01


class TestStatic:
    """A calibration from a separate static recording."""

    def test_static_take(self):
        rig, truth = recorded()
        points = list(truth.values())
        still = scenes.record(rig, points, *(rows[:3] for rows in scenes.smooth_motion(rig, 200, 5, most=0.2)))
        scenes.import_positions(still, list(truth))
        static = bpy.data.collections[-1]
        found = calibrate_markers(bpy.context, rig, static=static, refine=False)
        assert found.rms < 0.01
        assert set(rig.fabrik.capture.markers.keys()) == set(truth)

    def test_the_operator_uses_the_rigs_settings(self):
        rig, truth = recorded()
        still = scenes.record(rig, list(truth.values()), *(rows[:3] for rows in scenes.smooth_motion(rig, 200, 5)))
        scenes.import_positions(still, list(truth))
        rig.fabrik.capture.static, rig.fabrik.capture.refine = bpy.data.collections[-1], False
        assert bpy.ops.fabrik.calibrate_markers() == {"FINISHED"}

    def test_markers_guessed_by_motion_are_ignored(self):
        """Other balls may have the same numbers in the static trial: here three guessed markers are a meter off."""
        rig, truth = recorded()
        still = scenes.record(rig, list(truth.values()), *(rows[:3] for rows in scenes.smooth_motion(rig, 200, 5)))
        labels = list(truth)
        for label in (labels[place] for place in (4, 11, 17)):
            still[:, labels.index(label)] += (1.0, 0.3, -0.4)
            rig.fabrik.capture.markers[label].guess = 0.002
        scenes.import_positions(still, labels)
        found = calibrate_markers(bpy.context, rig, static=bpy.data.collections[-1], proportions="NONE")
        assert found.doubts == ()
        assert found.rms < 0.008
        assert np.median(offsets_off(rig, truth)) < 0.012

    def test_a_static_take_that_fits_worse_is_left_out_and_reported(self):
        """Half of its markers have the labels of others."""
        rig, truth = recorded()
        still = scenes.record(rig, list(truth.values()), *(rows[:3] for rows in scenes.smooth_motion(rig, 200, 5)))
        half = np.arange(0, still.shape[1], 2)
        still[:, half] = still[:, np.roll(half, 3)]
        scenes.import_positions(still, list(truth))
        found = calibrate_markers(bpy.context, rig, static=bpy.data.collections[-1], proportions="NONE")
        assert found.rms < 0.008
        (doubt,) = found.doubts
        assert re.fullmatch(
            r"The static recording was left out, because markers are \d+ mm off with it and \d mm without it: .*", doubt
        )
        assert rig.fabrik.capture.calibration_doubts == doubt


def lead(rig):
    rig.fabrik.capture.markers[3].target.parent = scenes.empty_at((0, 0, 1), "Leader")


@pytest.mark.parametrize(
    ("prepare", "options", "sentence"),
    [
        (
            lambda rig: None,
            {"reference": (3, 99)},
            "The reference frames are 3 to 99: they must be within 1 to",
        ),
        (lead, {}, "is moved by more than location keys"),
        (lambda rig: rig.fabrik.capture.markers.clear(), {}, "'Rig' has no matched markers"),
        (lambda rig: bpy.data.objects.remove(rig.fabrik.capture.markers[0].target), {}, "has no object|not in scene"),
    ],
)
def test_errors_name_the_cause_and_change_nothing(prepare, options, sentence):
    rig, _ = recorded()
    prepare(rig)
    bpy.context.view_layer.update()
    before = scenes.digest()
    with pytest.raises(FabrikError, match=sentence):
        calibrate_markers(bpy.context, rig, **options)
    assert scenes.digest() == before
