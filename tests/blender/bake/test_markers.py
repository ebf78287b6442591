"""Baking from a rig's markers: gaps, outliers, smoothing, the stored report, and markers from other importers."""

import csv
import io

import bpy
import numpy as np
import pytest
from support import scenes

from fabrik_addon.blender.bake.bake import bake
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.ui.overlays.drawing import joined
from fabrik_addon.blender.ui.overlays.goals import error_lines
from fabrik_addon.core.errors import FabrikError

pytestmark = pytest.mark.usefixtures("clean_scene")

FRAMES = 30
HIDDEN = slice(10, 18)


def points_of(rig, a_bone=3):
    """(bone, point) pairs of points about each bone, by label."""
    rng = np.random.default_rng(2)
    return {
        f"{bone.name}{place}": (bone.name, tuple(rng.normal(size=3) * 0.05 + (0.0, bone.length / 2.0, 0.0)))
        for bone in rig.data.bones
        for place in range(a_bone)
    }


def marked_rig(hidden=(), noise=0.0, a_bone=3, seed=1, travel=0.6, **where):
    """A rig with markers at their true positions (F, M, 3), and their labels; hidden: beginnings of labels."""
    rig = scenes.place(scenes.make_rig(), **where)
    scenes.make_active(rig)
    points = points_of(rig, a_bone)
    motion = scenes.smooth_motion(rig, FRAMES, seed, most=0.4, travel=travel)
    positions = scenes.record(rig, list(points.values()), *motion)
    positions += np.random.default_rng(3).normal(size=positions.shape) * noise
    for column, label in enumerate(points):
        if label.startswith(tuple(hidden)) and hidden:
            positions[HIDDEN, column] = np.nan
    put_on(rig, points, scenes.import_positions(positions, points))
    return rig, positions, list(points)


def put_on(rig, points, holders, bones=None):
    rig.fabrik.root = "FREE"
    for label, (bone, point) in points.items():
        entry = rig.fabrik.capture.markers.add()
        entry.name, entry.bone, entry.point, entry.offset = label, bone, "OFFSET", point
        entry.target, entry.target_bone = holders[label], (bones or {}).get(label, "")


def run(rig, **options):
    return bake(bpy.context, rig, frame_start=1, frame_end=FRAMES, **options)


@pytest.mark.one_blender
class TestFollowing:
    """Bakes follow markers by default, and effectors only on request."""

    @pytest.mark.parametrize("scale", [1.0, 0.01])
    def test_exact_markers_are_met(self, scale):
        rig, _, _ = marked_rig(scale=scale)
        result = run(rig)
        assert result.report.total.rms < 1e-3 * scale
        assert result.report.total.max < 5e-3 * scale

    def test_effectors_are_ignored_if_there_are_markers(self):
        rig, _, labels = marked_rig()
        scenes.aim(rig, "head", scenes.empty_at((9, 9, 9)))
        assert list(run(rig).report.markers) == labels
        assert list(run(rig, source="EFFECTORS").report.markers) == ["head"]

    def test_disabled_and_unmatched_markers_are_ignored(self):
        rig, _, labels = marked_rig()
        markers = rig.fabrik.capture.markers
        markers[0].enabled, markers[1].weight, markers[2].bone = False, 0.0, ""
        assert list(run(rig).report.markers) == labels[3:]

    def test_low_pass_smooths(self):
        rig, _, _ = marked_rig(noise=0.01)

        def roughness(solution):
            return np.abs(np.diff(solution.tails, 2, axis=0)).mean()

        plain, smooth = run(rig, robust=False), run(rig, robust=False, low_pass=4.0)
        assert roughness(smooth.trees[0].solution) < 0.6 * roughness(plain.trees[0].solution)
        with pytest.raises(FabrikError, match="cutoff"):
            run(rig, low_pass=12.0)

    def test_a_swapped_marker_does_not_drag_the_body(self):
        rig, positions, labels = marked_rig()
        column = labels.index("spine1")
        positions[12:15, column] += (0.5, 0.3, 0.0)
        markers = scenes.import_positions(positions, labels)
        for entry in rig.fabrik.capture.markers:
            entry.target = markers[entry.name]
        result = run(rig)
        others = np.delete(result.report.errors, column, axis=1)
        assert np.nanmax(others) < 0.01
        assert result.trees[0].outliers[:, column].sum() == 3
        assert result.report.total.max < 0.01
        assert result.lines[1].endswith(", 3 samples left out")
        assert np.nanmax(np.delete(run(rig, robust=False).report.errors, column, axis=1)) > 0.02


@pytest.mark.one_blender
class TestGaps:
    """Bakes of a forearm whose markers are missing for some frames."""

    @pytest.mark.parametrize("gaps", ["SOLVE", "HOLD", "INTERPOLATE", "UNKEYED"])
    def test_gaps_are_handled_as_chosen(self, gaps):
        rig, _, labels = marked_rig(hidden=["forearm.L"])
        result = run(rig, gaps=gaps)
        seen = ~np.isnan(result.report.errors)
        assert not seen[HIDDEN, labels.index("forearm.L0")].any()
        span = next(row for row in result.report.filled if row.bone == "forearm.L")
        assert (span.first, span.last) == (11, 18)
        path = 'pose.bones["forearm.L"].rotation_quaternion'
        keyed = next(keyframes.keys(curve)[:, 0] for curve in keyframes.curves(rig) if curve.data_path == path)
        inside = set(range(11, 19))
        assert inside.isdisjoint(keyed) if gaps == "UNKEYED" else inside <= set(keyed)
        if gaps != "HOLD":
            tails = result.trees[0].solution.tails[:, result.trees[0].solution.skeleton.index("forearm.L")]
            steps = np.linalg.norm(np.diff(tails, axis=0), axis=1)
            assert steps[8:20].max() < 2.5 * np.median(steps) + 0.01

    def test_notes_name_the_gaps(self):
        rig, _, _ = marked_rig(hidden=["forearm.L"])
        assert any(note.startswith("Gaps: 1, longest 8 frames") for note in run(rig).figures)


class TestReport:
    """The report that is stored with the rig."""

    def test_list_text_and_worst_frame(self, tmp_path):
        rig, _, labels = marked_rig(noise=0.005, hidden=["head"])
        report = run(rig).report
        capture = rig.fabrik.capture
        rows = {row.name: row for row in report.per_marker()}
        for entry in capture.markers:
            assert entry.error == pytest.approx(rows[entry.name].rms, abs=1e-6)
            assert entry.worst == pytest.approx(rows[entry.name].max, abs=1e-6)
            assert entry.worst_frame == rows[entry.name].worst_frame
            assert entry.coverage == pytest.approx(rows[entry.name].coverage, abs=1e-3)
        # The frame that the panel names with the largest error.
        total = report.total
        assert f"{total.worst_marker}, frame {capture.worst_frame}" in rig.fabrik.capture.last_result
        assert bpy.ops.fabrik.export_report(filepath=str(tmp_path / "walk.csv")) == {"FINISHED"}
        written = list(csv.DictReader(io.StringIO((tmp_path / "walk.csv").read_text())))
        assert [row["name"] for row in written if row["scope"] == "marker"] == labels
        assert {row["name"] for row in written if row["scope"] == "gap"} == {row.bone for row in report.filled}
        assert bpy.ops.fabrik.worst_frame() == {"FINISHED"}
        assert bpy.context.scene.frame_current == capture.worst_frame
        assert bpy.ops.fabrik.worst_frame(marker="spine1") == {"FINISHED"}
        assert bpy.context.scene.frame_current == rows["spine1"].worst_frame

    def test_baking_again_replaces_the_text(self):
        rig, _, _ = marked_rig()
        run(rig)
        run(rig)
        assert len(bpy.data.texts) == 1

    def test_active_limits_are_in_the_report(self):
        rig, _, _ = marked_rig()
        bone = rig.pose.bones["forearm.L"]
        bone["fabrik_limit"] = "HINGE"
        bone["fabrik_hinge_axis"] = "X"
        bone["fabrik_hinge"] = [-0.01, 0.01]
        assert "forearm.L" in run(rig).report.limits

    def test_error_lines_end_at_marker_and_bone(self):
        rig, positions, labels = marked_rig(noise=0.03, hidden=["head"])
        run(rig)
        bpy.context.scene.frame_set(14)
        lines = joined(error_lines(rig))
        ends = np.concatenate([own for own, _ in lines.values()]).reshape(-1, 2, 3)
        seen = [place for place, label in enumerate(labels) if not label.startswith("head")]
        assert len(ends) == len(seen)
        wanted = positions[13, seen]
        found = np.array(sorted(map(tuple, ends[:, 0])))
        assert np.allclose(found, np.array(sorted(map(tuple, wanted))), atol=1e-4)
        assert len(lines) >= 2

    def test_each_marker_has_its_state(self):
        rig, _, _ = marked_rig()
        markers = rig.fabrik.capture.markers
        assert {entry.state for entry in markers} == {"READY"}
        run(rig)
        markers[0].enabled, markers[1].bone = False, ""
        markers[3].error, markers[4].error = 0.03, 0.2
        bpy.data.objects.remove(markers[2].target)
        markers[2].target = None
        assert [entry.state for entry in list(markers)[:6]] == [
            "OFF", "FREE", "GONE", "FAIR", "BAD", "GOOD",
        ]  # fmt: skip


def marker_armature(positions, labels, name="Other"):
    """Markers as io_anim_c3d creates them: bones at the origin, with location keys on the frames that show them."""
    holder = scenes.make_rig([(label, "", (0, 0, 0), (0, 0, 0.02)) for label in labels], name=name)
    action = keyframes.new_action(holder, "recording")
    for column, label in enumerate(labels):
        bone = holder.data.bones[label]
        seen = ~np.isnan(positions[:, column]).any(axis=1)
        local = positions[seen, column] @ np.array(bone.matrix_local)[:3, :3]
        frames = 1 + np.flatnonzero(seen)
        keyframes.write_curves(action, holder, f'pose.bones["{label}"].location', frames, local, label)
    return holder


class TestMarkersOfOthers:
    """Empties and bones that the add-on has not imported."""

    def test_bones_of_an_armature_with_their_gaps(self):
        rig, positions, labels = marked_rig(hidden=["forearm.L"])
        wanted = run(rig).report.errors
        holder = marker_armature(positions, labels)
        scenes.make_active(rig)
        for entry in rig.fabrik.capture.markers:
            entry.target, entry.target_bone = holder, entry.name
        found = run(rig).report.errors
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        assert np.nanmax(found) < 5e-3

    def test_empties_without_keys_where_they_are_hidden(self):
        rig, _, _ = marked_rig(hidden=["forearm.L"])
        wanted = run(rig).report.errors
        for entry in rig.fabrik.capture.markers:
            del entry.target["fabrik_marker"]
        assert np.array_equal(np.isnan(run(rig).report.errors), np.isnan(wanted))

    def test_empties_animated_by_hand_have_no_gaps(self):
        rig, _, _ = marked_rig()
        empty = rig.fabrik.capture.markers[0].target
        del empty["fabrik_marker"]
        for curve in keyframes.curves(empty):
            for place in reversed(range(1, FRAMES - 1)):
                if place % 7:
                    curve.keyframe_points.remove(curve.keyframe_points[place])
        assert not np.isnan(run(rig).report.errors[:, 0]).any()


def test_one_undo_step():
    marked_rig()
    bpy.ops.ed.undo_push(message="before")
    before = scenes.digest()
    bpy.ops.fabrik.bake("EXEC_DEFAULT", True, frame_start=1, frame_end=FRAMES)
    assert scenes.digest() != before
    bpy.ops.ed.undo()
    assert scenes.digest() == before


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda markers: setattr(markers[0], "bone", "tail"), "Marker 'hips0': 'Rig' has no bone 'tail'"),
        (lambda markers: setattr(markers[0], "target", None), "Marker 'hips0' has no object"),
        (lambda markers: bpy.data.objects.remove(markers[0].target), "Marker 'hips0'"),
        (lambda markers: setattr(markers[0], "target_bone", "x"), "Marker 'hips0': .* is not an armature"),
    ],
)
def test_errors_name_the_marker_and_change_nothing(spoil, sentence):
    rig, _, _ = marked_rig()
    spoil(rig.fabrik.capture.markers)
    bpy.context.view_layer.update()
    before = scenes.digest()
    with pytest.raises(FabrikError, match=sentence):
        run(rig)
    assert scenes.digest() == before


def test_a_changed_playback_speed_is_reported():
    """Fixed: baked again at another rate, the feet drifted 48 mm instead of 4, without a warning."""
    rig, _, _ = marked_rig()
    take = next(iter(rig.fabrik.capture.markers)).target.users_collection[0]
    rig.fabrik.capture.take = take
    scene, name = bpy.context.scene, take.name
    assert not said_of_speed(rig)
    scene.render.fps *= 2
    rate = scene.render.fps
    (said,) = said_of_speed(rig)
    told = f"{name!r} was imported at {rate // 2} fps, but the scene now plays at {rate} fps"
    assert said == f"{told}: set the scene's frame rate back, or import the recording again"


def said_of_speed(rig):
    found = bake(bpy.context, rig, frame_start=1, frame_end=6)
    return [warning for warning in found.report.doubts if "imported" in warning]
