"""Files of each format with wrong units, axes, rates, NaN, one frame or pickles: read, doubted or refused.

What is wrong is reported in one sentence that says what to do. Files that are right in spite of it give none.
"""

import pickle

import numpy as np
import pytest
from support import humans, motions
from support.formats import FORMATS, POSES, c3d
from support.keypoints import y_up
from support.steps import retarget

from fabrik_addon.core.errors import FabrikError
from fabrik_addon.markers.clip import to_z_up
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.retarget.files import read_recorded
from fabrik_addon.retarget.goals import RetargetSettings

PERSON = motions.skeleton_of(humans.human(arms=45.0, fingers=False))


def in_other_axes(write, points):
    """The header of a C3D file gives Z, but Y is up; elsewhere X is up."""
    return write(y_up(points) if write is c3d else np.roll(points, 1, axis=-1), "", 60.0)


def with_nan(points):
    changed = points.copy()
    changed[5:9, :2] = np.nan
    return changed


# For each fault: how to write the file, and the beginning of the sentence; "" if the file is read as it was recorded.
WRONG = {
    "right": (lambda write, points: write(points, "", 60.0), ""),
    "units": (
        lambda write, points: write(points, "m", 60.0),
        {
            "nexus.csv": "The markers of Anna extend over 1617 m: choose units",
            "points.csv": "The units are unknown; assumed cm, so the person measures 0.59 m: choose other units",
            "points.npy": "The units are unknown; assumed cm, so the person measures 0.59 m: choose other units",
            "soma.npz": "soma.npz: its units are unknown, and 1.62e+06 is not a person's size",
            "smpl.npz": "smpl.npz: its body moves 2416 m per second: export locations in meters",
            "a.mvnx": "a.mvnx: its body moves 2416 m per second: export locations in meters",
            "a.bvh": "The hips are 0.0111 times the legs' length above the origin: ",
            "": "The markers of the person extend over 1617 m: choose units",
        },
    ),
    "axes": (
        in_other_axes,
        {
            "a.c3d": "The file's up axis is Z, but the markers show Y: choose the up axis",
            **dict.fromkeys(POSES, "The root's locations and the rotations have different up axes: export"),
            "": "The up axis is unknown; assumed ",
        },
    ),
    "rate": (
        lambda write, points: write(points, "", 0.0),
        {
            "motive.csv": "",
            "a.mvnx": "a.mvnx: its frameRate is '0.0': choose the frame rate",
            "a.bvh": "a.bvh: its Frame Time is '0', but must be in seconds",
            **dict.fromkeys(("a.trc", "a.c3d", "nexus.csv"), "{}: the frame rate is unknown: choose one"),
            "": "The frame rate is unknown; assumed 30 Hz: choose another",
        },
    ),
    "some NaN": (
        lambda write, points: write(with_nan(points), "", 60.0),
        {"a.bvh": "a.bvh: line 140: 'nan' is not a number: export it again", "": ""},
    ),
    "all NaN": (
        lambda write, points: write(np.nan * points, "", 60.0),
        {
            **dict.fromkeys(("smpl.npz", "a.mvnx"), "{}: it has no frame whose numbers are all finite: export"),
            "a.bvh": "a.bvh: line 135: 'nan' is not a number: export it again",
            "": "{}: no marker is visible on any frame: choose",
        },
    ),
    "one frame": (lambda write, points: write(points[:1], "", 60.0), {"points.csv": "The frame rate is unk", "": ""}),
    "pickle": (
        lambda _, points: pickle.dumps({"poses": points}),
        {
            "a.mvnx": "a.mvnx: it is not a complete MVNX document (",
            "a.bvh": "a.bvh: this is not a BVH file, because it does not begin with HIERARCHY: choose",
            "": "{}: it contains pickled Python objects, which may run code when they are read: ",
        },
    ),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("wrong", WRONG)
def test_each_format_is_read_or_refused_in_one_sentence(tmp_path, name, wrong):
    make, wanted = WRONG[wrong]
    written = make(*FORMATS[name])
    (tmp_path / name).write_bytes(written if isinstance(written, bytes) else written.encode())
    # A .npy file has no rate.
    rate = 60.0 if name == "points.npy" and wrong != "rate" else None
    try:
        if name in POSES:
            body = read_recorded(tmp_path / name)
            found = (*body.doubts, *retarget(body.motion("a"), PERSON, RetargetSettings()).doubts)
        else:
            clip = read_markers(tmp_path / name, rate=rate)
            found = clip.doubts
            if not found:
                np.testing.assert_allclose(to_z_up(clip).positions[0], FORMATS[name][1][0], atol=1e-4)
    except FabrikError as trouble:
        found = (str(trouble),)
    begins = wanted if isinstance(wanted, str) else wanted.get(name, wanted[""])
    assert [each.startswith(begins.format(name)) for each in found] == [True] * bool(begins), found
    assert all(": " in each and "\n" not in each and "Error" not in each for each in found)
