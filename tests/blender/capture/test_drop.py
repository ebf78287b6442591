"""Files that are dropped: the suggested armature, and one import that goes on to keys or changes nothing."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from support import scenes
from support.formats import FORMATS, POSES, write_format
from support.takes import active_human

from fabrik_addon.blender.capture.calibrate import calibrate_markers_steps
from fabrik_addon.blender.capture.import_markers import all_or_nothing, import_clip
from fabrik_addon.blender.capture.matching import match_and_guess
from fabrik_addon.blender.retarget import add_recorded
from fabrik_addon.blender.rig.keyframes import curves
from fabrik_addon.blender.ui.operators.motion import FABRIK_OT_import_markers
from fabrik_addon.blender.ui.panels.base import next_in_motion
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.markers.steps import finish
from fabrik_addon.retarget.files import read_recorded

FRAMES = 30
# Meters and degrees.
MARKERS_OFF, ROTATIONS_OFF = 0.002, 0.1


def state(rig):
    """Everything that a failed import must leave as it was."""
    capture, ends = rig.fabrik.capture, [(*bone.head_local, *bone.tail_local) for bone in rig.data.bones]
    # The data of the current take is not in its record.
    takes = [(each.name, len(each.markers)) for each in capture.takes if each.collection != capture.take]
    stored = [capture.take, takes, capture.calibrated, len(capture.factors)]
    stored += [rig.fabrik.root, rig.fabrik.retarget.source, rig.fabrik.retarget.brought]
    return scenes.digest(), stored, ends, rig.animation_data and rig.animation_data.action


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_goes_from_the_import_to_keys(tmp_path, name):
    rig = active_human()
    here = bpy.context.object, rig.mode, bpy.context.scene.frame_current, set(bpy.context.selected_objects)
    path = write_format(tmp_path, name)
    assert bpy.ops.fabrik.import_markers(filepath=str(path), rig="Rig") == {"FINISHED"}
    assert (bpy.context.object, rig.mode, bpy.context.scene.frame_current, set(bpy.context.selected_objects)) == here
    assert {len(curve.keyframe_points) for curve in curves(rig)} == {FRAMES}
    capture = rig.fabrik.capture
    assert f"{FRAMES} frames of '{path.stem}'" in capture.last_result
    if name in POSES:
        assert rig.fabrik.retarget.source.name == path.stem
        assert float(capture.last_result.partition("median error ")[2].split("°")[0]) <= ROTATIONS_OFF
        assert next_in_motion(bpy.context, rig)[0].startswith("Retargeted")
    else:
        assert all(marker.bone for marker in capture.markers)
        assert float(np.sqrt(np.mean([marker.error**2 for marker in capture.markers]))) < MARKERS_OFF
        assert capture.calibrated
        assert next_in_motion(bpy.context, rig)[0].startswith("Baked")
    # The report of the bake has the doubts about the file.
    assert ("The frame rate is unknown; assumed 30 Hz" in capture.doubts) == (name == "points.npy")


def test_the_reference_frames_of_another_recording_are_not_used(tmp_path):
    rig = active_human()
    rig.fabrik.capture.reference, rig.fabrik.retarget.reference = (500, 600), 500
    for name in ("a.c3d", "a.bvh"):
        assert bpy.ops.fabrik.import_markers(filepath=str(write_format(tmp_path, name)), rig="Rig") == {"FINISHED"}


@pytest.mark.parametrize("name", ["a.trc", "a.bvh"])
def test_an_error_takes_everything_back(tmp_path, name):
    """The keys can't be written, which is found after the import, the match and the calibration."""
    rig = active_human()
    bpy.ops.fabrik.import_markers(filepath=str(write_format(tmp_path, "nexus.csv")), rig="Rig")
    other = bpy.data.objects.new("Other", rig.data)
    bpy.context.scene.collection.objects.link(other)
    other.animation_data_create().action = rig.animation_data.action
    other.animation_data.action_slot = rig.animation_data.action_slot
    rig.fabrik.bake.action = "CURRENT"
    before = state(rig)
    with pytest.raises(RuntimeError, match="make it single-user first"):
        bpy.ops.fabrik.import_markers(filepath=str(write_format(tmp_path, name)), rig="Rig")
    assert state(rig) == before


def test_a_stop_after_the_calibration_takes_everything_back(tmp_path):
    """The calibration has changed the rest pose of the rig, and another recording is on the rig."""
    rig = active_human()
    bpy.ops.fabrik.import_markers(filepath=str(write_format(tmp_path, "soma.npz")), rig="Rig")
    before = state(rig)

    def stopped():
        with all_or_nothing(bpy.context, rig):
            take = import_clip(bpy.context, read_markers(write_format(tmp_path, "a.c3d")), start_frame=300)
            match_and_guess(bpy.context, rig, take)
            finish(calibrate_markers_steps(bpy.context, rig, proportions="REST"))
            assert state(rig)[2] != before[2]
            yield

    steps = stopped()
    next(steps)
    steps.close()
    found = state(rig)
    np.testing.assert_allclose(found[2], before[2], atol=1e-6)
    assert (*found[:2], found[3]) == (*before[:2], before[3])


def test_a_second_file_that_can_t_be_imported_takes_the_first_one_back(tmp_path):
    rig = active_human()
    names = [write_format(tmp_path, name).name for name in ("a.trc", "nexus.csv")]
    before = state(rig)
    with pytest.raises(RuntimeError, match="outside Blender's range"):
        bpy.ops.fabrik.import_markers(
            directory=str(tmp_path), files=[{"name": name} for name in names], start_frame=1_048_574
        )
    assert state(rig) == before


def test_data_that_others_add_while_the_rig_is_animated_is_kept(tmp_path):
    """For example assets that another add-on loads meanwhile."""
    rig = active_human()
    clip = read_markers(write_format(tmp_path, "a.c3d"))
    failing = all_or_nothing(bpy.context, rig)
    additions = failing.__enter__()
    take = import_clip(bpy.context, clip).name
    assert len(additions()) == 1 + 2 * len(clip.names)
    bpy.data.objects.new("Theirs", None)
    assert not failing.__exit__(KeyError, KeyError(), None)
    assert "Theirs" in bpy.data.objects
    assert take not in bpy.data.collections
    assert clip.names[0] not in bpy.data.objects


def test_closing_the_dialog_stops_nothing():
    assert FABRIK_OT_import_markers.cancel(SimpleNamespace(), bpy.context) is None


def test_presets_have_only_the_settings_of_the_import():
    """A preset with a range of frames or a name would set it for all recordings."""
    properties = bpy.ops.fabrik.import_markers.get_rna_type().properties
    stored = {each.identifier for each in properties if not each.is_skip_preset}
    shown = {"units", "up_axis", "keypoints", "start_frame", "holds", "rate", "timing", "scale"}
    assert stored - set(bpy.types.Operator.bl_rna.properties.keys()) == shown


def test_several_files_are_only_imported(tmp_path):
    """Their rates differ by less than Blender can store."""
    rig = active_human()
    files = [{"name": write_format(tmp_path, name).name} for name in ("a.bvh", "a.trc", "nexus.csv")]
    assert bpy.ops.fabrik.import_markers(directory=str(tmp_path), files=files, rig="Rig") == {"FINISHED"}
    assert rig.animation_data is None or rig.animation_data.action is None
    assert rig.fabrik.capture.take.name == "nexus"


def test_a_person_who_stands_still_is_only_imported(tmp_path, capfd):
    rig = active_human()
    clip = read_markers(write_format(tmp_path, "a.c3d"))
    scenes.write_trc(tmp_path / "static.trc", clip.names, np.repeat(clip.positions[:1], 5, axis=0), 60.0)
    assert bpy.ops.fabrik.import_markers(filepath=str(tmp_path / "static.trc"), rig="Rig") == {"FINISHED"}
    assert "Only imported, because the person stands still" in capfd.readouterr().out
    assert rig.fabrik.capture.take is None


def test_markers_with_unknown_labels_are_imported_and_listed(tmp_path, capfd):
    rig = active_human()
    rng = np.random.default_rng(2)
    scenes.write_trc(tmp_path / "odd.trc", ["P1", "P2", "P3"], rng.normal(size=(5, 3, 3)), 60.0)
    assert bpy.ops.fabrik.import_markers(filepath=str(tmp_path / "odd.trc"), rig="Rig") == {"FINISHED"}
    assert "(no known labels); without a bone: P1, P2, P3" in capfd.readouterr().out
    assert rig.fabrik.capture.markers.keys() == ["P1", "P2", "P3"]


@pytest.mark.parametrize(("chosen", "sentence"), [("Nobody", "no object 'Nobody'"), ("Lamp", "Select an armature")])
def test_another_object_than_an_armature_is_refused(tmp_path, chosen, sentence):
    rig = active_human()
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("Lamp", None))
    before = state(rig)
    with pytest.raises(RuntimeError, match=sentence):
        bpy.ops.fabrik.import_markers(filepath=str(write_format(tmp_path, "a.c3d")), rig=chosen)
    assert state(rig) == before


class TestSuggestion:
    """The armature in the dialog."""

    @staticmethod
    def suggested(**given):
        dialog = SimpleNamespace(**{"rig": "", "files": ()} | given)
        dialog.properties = SimpleNamespace(is_property_set=lambda name: name in given)
        dialog.invoke_popup = lambda _context: {"RUNNING_MODAL"}
        assert FABRIK_OT_import_markers.invoke(dialog, bpy.context, None) == {"RUNNING_MODAL"}
        return dialog.rig

    def test_the_active_one_else_the_selected_one_else_the_only_one(self, clean_scene):
        assert self.suggested() == ""
        rig = scenes.make_rig(name="Anna")
        bpy.context.view_layer.objects.active = None
        rig.select_set(False)
        assert self.suggested() == "Anna"
        other = scenes.make_rig(name="Ben")
        other.select_set(False)
        bpy.context.view_layer.objects.active = None
        assert self.suggested() == ""
        other.select_set(True)
        assert self.suggested() == "Ben"
        bpy.context.view_layer.objects.active = rig
        assert self.suggested() == "Anna"

    def test_several_files_suggest_none(self, clean_scene):
        scenes.make_rig(name="Anna")
        assert self.suggested(files=("a.trc", "b.trc")) == ""

    def test_imported_poses_and_bones_without_known_names_are_left_out(self, clean_scene, tmp_path):
        rig = scenes.make_rig(name="Anna")
        source = add_recorded(bpy.context, read_recorded(write_format(tmp_path, "a.bvh")), "a")
        scenes.make_active(source)
        assert self.suggested() == "Anna"
        for bone in rig.data.bones:
            bone.name = f"x{bone.name[::-1]}y"
        scenes.make_active(rig)
        assert self.suggested() == ""
