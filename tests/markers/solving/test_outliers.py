"""Samples that cannot be right, looked for among poses of a course."""

import numpy as np
from support import walker

from fabrik_addon.core import Options, Solver
from fabrik_addon.markers.solving.course import solve_each
from fabrik_addon.markers.solving.outliers import reject_outliers
from fabrik_addon.markers.solving.recording import Recording
from fabrik_addon.markers.steps import finish

FRAMES = slice(100, 160)


def test_poses_stay_where_nothing_turns_out_to_be_wrong():
    """A marker is farther off than usual, but not so far that it is left out: its frames keep their course."""
    targets = np.array(walker.true_positions()[FRAMES])
    targets[20:30, walker.marker_names().index("LASI")] += [0.0, 0.0, 0.065]
    solver = Solver(walker.skeleton(), walker.effectors(), root="FREE", options=Options(restarts=0))
    recording = Recording(solver, targets, None, walker.RATE)
    finish(solve_each(recording, steady=True))
    rotations, expected = np.array(recording.solution.rotations), np.array(recording.expected)
    assert np.nanmax(recording.distances()) > 0.015 * walker.skeleton().size
    reject_outliers(recording)
    assert not recording.outliers.any()
    assert (recording.solution.rotations == rotations).all()
    assert (recording.expected == expected).all()
