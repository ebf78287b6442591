"""Writes exports of Motive and Nexus with the sample person's markers, as ground truth for their readers."""

from dataclasses import dataclass, field

import numpy as np

from . import walker
from .keypoints import y_up

FRAMES = 6


def truth():
    """(F, M, 3) the sample person's markers, meters, Z up, and their names."""
    return walker.true_positions()[:FRAMES], walker.marker_names()


@dataclass
class Motive:
    """An export of Motive to be written, so that a test changes only the part that it tests."""

    version: str = "1.23"
    units: str = "Meters"
    rate: str = "120.000000"
    axes: str = "Y"
    owners: list = field(default_factory=list)

    def add(self, kind, name, told, axes, values):
        """values: (F, len(axes))."""
        self.owners.append((kind, name, told, axes, np.asarray(values)))
        return self

    def text(self, frames=FRAMES):
        keys = {
            "Format Version": self.version, "Take Name": "Take, one", "Capture Frame Rate": "240.000000",
            "Export Frame Rate": self.rate, "Total Exported Frames": str(frames), "Rotation Type": "Quaternion",
            "Length Units": self.units, "Coordinate Space": "Global",
        }  # fmt: skip
        quoted = [f'"{cell}"' if "," in cell else cell for pair in keys.items() for cell in pair]
        columns = [(kind, name, told, axis) for kind, name, told, axes, _ in self.owners for axis in axes]
        rows = [
            ["", "Type", *(kind for kind, *_ in columns)],
            ["", "Name", *(f'"{name}"' for _, name, *_ in columns)],
            ["", "ID", *("A0F1" for _ in columns)],
            *([["", "Parent", *("" for _ in columns)]] if self.version == "1.25" else []),
            ["", "", *(told for _, _, told, _ in columns)],
            ["Frame", "Time (Seconds)", *(axis for *_, axis in columns)],
        ]
        for frame in range(frames):
            values = [value for *_, table in self.owners for value in np.atleast_1d(table[frame])]
            cells = ["" if np.isnan(value) else f"{value:.6f}" for value in values]
            rows.append([str(frame), f"{frame / 120:.6f}", *cells])
        return "\n".join([",".join(quoted), "", *(",".join(row) for row in rows)]) + "\n"


def of_markers(version="1.23", units="Meters", factor=1.0, prefix="", axes=y_up):
    file = Motive(version, units)
    positions, names = truth()
    for place, name in enumerate(names):
        file.add("Marker", f"{prefix}{name}", "Position", "XYZ", factor * axes(positions[:, place]))
    return file


def nexus_text(unit="mm", factor=1000.0, rate="100", before="", after="", extra=False, points=None):
    """points: (F, M, 3) instead of the person's positions."""
    positions, names = truth()
    positions = positions if points is None else points
    axes = ["X", "Y", "Z", *(["X'", "Y'", "Z'"] if extra else [])]
    units = [unit] * 3 + ([f"{unit}/s"] * 3 if extra else [])
    rows = [
        ["", "", *(cell for name in names for cell in (f"Anna:{name}", *[""] * (len(axes) - 1)))],
        ["Frame", "Sub Frame", *axes * len(names)],
        ["", "", *units * len(names)],
    ]
    for frame, each in enumerate(positions, 101):
        values = np.append(each, np.full_like(each, 7.0), axis=1) if extra else each
        cells = [f"{factor * value:.6g}" if np.isfinite(value) else "" for value in values.ravel()]
        rows.append([str(frame), "0", *cells])
    return before + f"Trajectories\n{rate}\n" + "\n".join(",".join(row) for row in rows) + "\n" + after
