"""The up axis of people who lie, sit, crawl or are upside down, from files of markers and keypoints."""

import numpy as np
import pytest
from support.keypoints import csv_text, person, y_up
from support.marker_tables import Motive
from support.poses import rotation

from fabrik_addon.markers.clip import to_z_up
from fabrik_addon.markers.files.any_file import read_markers

PAIRS = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle")
JOINTS = ["nose", *(f"{side}_{joint}" for joint in PAIRS for side in ("left", "right"))]
FRAMES = 20
LEGS = ("knee", "ankle")


def posed(turn, seat=0.0, travel=0.0):
    """(F, 13, 3) joints of a person, Z up, rotated by `turn` degrees about X; the lowest is 5 cm above the floor.

    seat: degrees by which the legs are raised to the front. travel: meters along Y.
    """
    points = person(FRAMES)
    middle = points["pelvis"][:1]
    about = {joint: rotation(np.radians([-seat, 0.0, 0.0])) if joint.endswith(LEGS) else np.eye(3) for joint in JOINTS}
    body = np.stack([(points[joint] - middle) @ about[joint].T for joint in JOINTS], axis=1)
    body = body @ rotation(np.radians([turn, 0.0, 0.0])).T
    body += np.linspace(0.0, travel, FRAMES)[:, None, None] * [0.0, 1.0, 0.0] + [0.3, 0.4, 0.0]
    body[..., 2] += 0.05 - body[..., 2].min(axis=1, keepdims=True)
    return body


@pytest.mark.parametrize("up", ["Z", "Y"])
@pytest.mark.parametrize("program", ["keypoints", "Motive"])
@pytest.mark.parametrize(("turn", "seat", "travel"), [
    pytest.param(90.0, 0.0, 0.0, id="lies on the front"),
    pytest.param(-90.0, 0.0, 0.0, id="lies on the back"),
    pytest.param(80.0, 80.0, 0.0, id="is on hands and knees"),
    pytest.param(85.0, 60.0, 3.0, id="crawls"),
    pytest.param(0.0, 90.0, 0.0, id="sits on the floor"),
    pytest.param(0.0, 0.0, 0.0, id="stands"),
])  # fmt: skip
def test_trunk_and_floor_show_the_up_axis(tmp_path, turn, seat, travel, up, program):
    """Fixed: people who lay were rotated to stand, and people who sat with straight legs to lie."""
    wanted, path = posed(turn, seat, travel), tmp_path / "take.csv"
    written = wanted if up == "Z" else y_up(wanted)
    if program == "keypoints":
        path.write_text(csv_text(JOINTS, 1000.0 * written))
    else:
        file = Motive()
        for place, name in enumerate(JOINTS):
            file.add("Marker", name, "Position", "XYZ", written[:, place])
        path.write_text(file.text(FRAMES))
    clip = read_markers(path)
    assert clip.up_axis == up
    np.testing.assert_allclose(to_z_up(clip).positions, wanted, atol=1e-5)
