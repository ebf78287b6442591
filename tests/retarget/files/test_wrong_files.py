"""Files of each format with wrong units, axes, rates, NaN, one frame or pickles: read, doubted or refused.

What is wrong is reported in one sentence that says what to do. Files that are right in spite of it give none.
"""

import pickle
from io import BytesIO

import numpy as np
import pytest
from support import humans, motions, walker
from support.c3d_files import C3d, text
from support.keypoints import csv_text, person, y_up
from support.marker_tables import Motive, nexus_text
from support.poses import UPRIGHT, bvh_text, mvnx_text
from support.steps import retarget

from fabrik_addon.core.errors import FabrikError
from fabrik_addon.markers.clip import to_z_up
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.retarget.files import read_recorded
from fabrik_addon.retarget.goals import RetargetSettings

COUNT = 30
LIMBS = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle")
COCO = ["nose", *(f"{side}_{part}" for part in ("eye", "ear", *LIMBS) for side in ("left", "right"))]
MARKERS, KEYPOINTS = walker.true_positions()[:COUNT], np.stack([person(COUNT)[name] for name in COCO], axis=1)


def trc(points, unit, rate):
    names = walker.marker_names()
    lines = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "DataRate\tNumFrames\tNumMarkers\tUnits"]
    lines += [f"{rate or 0}\t{len(points)}\t{len(names)}\t{unit or 'mm'}", "Frame#\tTime\t" + "\t\t\t".join(names), ""]
    for frame, one in enumerate(1000.0 * y_up(points)):
        cells = ["" if np.isnan(value) else f"{value:.4f}" for value in one.ravel()]
        lines.append("\t".join([str(frame + 1), "0", *cells]))
    return "\n".join(lines) + "\n"


def c3d(points, unit, rate):
    labels, more = walker.marker_names(), {"POINT:UNITS": text(unit or "mm")}
    return C3d(1000.0 * points, labels=labels, rate=rate, params=more).bytes()


def motive(points, unit, rate):
    # The times of its frames are those of 120 Hz.
    file = Motive("1.23", "Meters" if unit else "Millimeters", f"{2.0 * rate:.6f}")
    for place, name in enumerate(walker.marker_names()):
        file.add("Marker", name, "Position", "XYZ", 1000.0 * y_up(points[:, place]))
    return file.text(len(points))


def nexus(points, unit, rate):
    return nexus_text(unit or "mm", rate=str(rate), points=points)


def table(points, unit, rate):
    factor = 39.37 if unit else 1000.0
    numbers = np.column_stack([np.arange(len(points)) / (rate or np.inf), factor * points.reshape(len(points), -1)])
    return csv_text(["time", *(f"{name}_{axis}" for name in COCO for axis in "xyz")], numbers, ends=("",))


def array(points, unit, _):
    return saved(np.save, (39.37 if unit else 1000.0) * points)


def soma(points, unit, rate):
    return saved(
        np.savez,
        marker_data=(1e6 if unit else 1.0) * points,
        marker_labels=np.array(walker.marker_names()),
        frame_rate=float(rate),
    )


def saved(save, *arrays, **named):
    file = BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


WALKS = np.arange(COUNT) / 30.0
SWING = 0.4 * np.sin(5.0 * WALKS)


def smpl(trans, unit, rate):
    poses = np.zeros((len(trans), 24, 3))
    poses[:, 0], poses[:, 1, 0], poses[:, 2, 0] = UPRIGHT, SWING[: len(trans)], -SWING[: len(trans)]
    return saved(
        np.savez, poses=poses.reshape(len(trans), -1), trans=(1000.0 if unit else 1.0) * trans, mocap_framerate=rate
    )


def mvnx(pelvis, unit, rate):
    still = np.tile([1.0, 0.0, 0.0, 0.0], (len(pelvis), 23, 1))
    return mvnx_text(still, (1000.0 if unit else 1.0) * pelvis, rate)


def bvh(pelvis, unit, rate):
    turns = {name: np.degrees(SWING[: len(pelvis), None]) * (0.0, sign, 0.0) for name, sign in LEGS.items()}
    written = bvh_text(turns, (0.01 if unit else 1.0) * pelvis, rate or 1.0)
    return written if rate else written.replace("Frame Time: 1.0000000", "Frame Time: 0")


LEGS = {"LeftUpperLeg": 1.0, "RightUpperLeg": -1.0}
# The pelvis of someone who walks, meters, Z up.
PELVIS = np.stack([0.0 * WALKS, -1.2 * WALKS, 0.92 + 0.02 * np.cos(10.0 * WALKS)], axis=1)
FORMATS = {
    "a.trc": (trc, MARKERS), "a.c3d": (c3d, MARKERS), "motive.csv": (motive, MARKERS), "nexus.csv": (nexus, MARKERS),
    "points.csv": (table, KEYPOINTS), "points.npy": (array, KEYPOINTS), "soma.npz": (soma, MARKERS),
    "smpl.npz": (smpl, PELVIS), "a.mvnx": (mvnx, PELVIS), "a.bvh": (bvh, PELVIS),
}  # fmt: skip
POSES = ("smpl.npz", "a.mvnx", "a.bvh")
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
            **dict.fromkeys(("points.csv", "points.npy"), "{}: no point is visible on any frame: choose"),
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
