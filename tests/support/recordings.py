"""The paths of the real recordings, for tests and benchmarks that read them."""

import os
from pathlib import Path

import numpy as np
import pytest

from fabrik_addon.markers.files.any_file import read_markers

from .opensim import Model

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("FABRIK_TEST_DATA", ROOT.parent / "shared" / "data"))
# The seconds of the walk that OpenSim's set-up solves.
FROM, TO = 0.4, 1.6


def recording(name):
    """The path of a recording; skips the test if it is missing."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"FABRIK_TEST_DATA has no {name}")
    return path


def gait_model():
    """OpenSim's model of the walking person."""
    return Model(recording("gait2354_subject01_simbody.osim"), recording("gait2354_Setup_IK.xml"))


def gait_targets(model):
    """(F, M, 3) meters, the walk's markers that have a weight, over the seconds that OpenSim solves."""
    clip = read_markers(recording("gait2354_subject01_walk1.trc"))
    times = np.arange(clip.frame_count) / clip.rate
    frames = (times > FROM - 1e-6) & (times < TO + 1e-6)
    places = [clip.names.index(marker.name) for marker in model.markers]
    return np.array(clip.positions[frames][:, places])
