"""Markers and keypoints of every format in the scene: positions of their empties, Z up, at the recording's rate."""

import bpy
import numpy as np
import pytest
from support.keypoints import array, csv_text, y_down, y_up
from support.marker_tables import FRAMES, nexus_text, of_markers, truth

from fabrik_addon.blender.settings.motion import MARKER_NAME
from fabrik_addon.blender.ui.entries import FABRIK_FH_markers

COCO = (
    "nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder left_elbow right_elbow left_wrist"
    " right_wrist left_hip right_hip left_knee right_knee left_ankle right_ankle"
)


def write_motive(path):
    positions, names = truth()
    path.write_text(of_markers(units="Millimeters", factor=1000.0).text(), encoding="utf-8")
    return positions, names, 120


def write_nexus(path):
    positions, names = truth()
    path.write_text(nexus_text(), encoding="utf-8")
    return positions, names, 100


def write_keypoints(path):
    positions = array(COCO.split(), FRAMES)
    path.write_text(csv_text(COCO.split(), 1000.0 * positions), encoding="utf-8")
    return positions, COCO.split(), 30


def write_array(path):
    positions = array(COCO.split(), FRAMES)
    np.save(path, 100.0 * y_down(positions))
    return positions, COCO.split(), 30


def write_amass(path):
    positions, names = truth()
    np.savez(path, marker_data=positions, marker_labels=names, mocap_framerate=60.0)
    return positions, names, 60


def write_amass_y_up(path):
    positions, names = truth()
    np.savez(path, marker_data=1000.0 * y_up(positions), marker_labels=names, mocap_frame_rate=60.0)
    return positions, names, 60


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("motive.csv", write_motive),
        ("nexus.csv", write_nexus),
        ("mediapipe_body_3d_xyz.csv", write_keypoints),
        ("walk.npy", write_array),
        ("amass.npz", write_amass),
        ("soma.npz", write_amass_y_up),
    ],
)
def test_a_dropped_file_is_in_the_scene_as_it_was_recorded(clean_scene, tmp_path, name, write):
    path = tmp_path / name
    positions, names, rate = write(path)
    assert path.suffix in FABRIK_FH_markers.bl_file_extensions.split(";")
    assert bpy.ops.fabrik.import_markers(directory=str(tmp_path), files=[{"name": name}]) == {"FINISHED"}
    assert bpy.context.scene.render.fps == rate
    empties = {empty[MARKER_NAME].rpartition(":")[2]: empty for empty in bpy.data.collections[path.stem].objects}
    assert set(empties) == set(names)
    for frame in (1, FRAMES):
        bpy.context.scene.frame_set(frame)
        places = np.array([empties[each].matrix_world.translation for each in names])
        seen = np.isfinite(positions[frame - 1]).all(axis=1)
        np.testing.assert_allclose(places[seen], positions[frame - 1][seen], atol=1e-5)
