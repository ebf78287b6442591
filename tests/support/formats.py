"""Short recordings of a person as files of all formats, exactly as their specifications say."""

from io import BytesIO

import numpy as np
from support import walker
from support.c3d_files import C3d, text
from support.keypoints import csv_text, person, y_up
from support.marker_tables import Motive, nexus_text
from support.poses import UPRIGHT, bvh_text, mvnx_text

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


def write_format(folder, name):
    """Write the file of this name at 60 Hz, in its own units; returns its path."""
    make, points = FORMATS[name]
    written = make(points, "", 60.0)
    (folder / name).write_bytes(written if isinstance(written, bytes) else written.encode())
    return folder / name
