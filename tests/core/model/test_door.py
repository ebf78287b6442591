"""Invalid input of a solve: one sentence that names the problem."""

import numpy as np
import pytest
from support.rigs import from_joints, straight_chain

from fabrik_addon.core import (
    Ball,
    Effector,
    Hinge,
    LimitError,
    Options,
    OptionsError,
    Skeleton,
    SkeletonError,
    Solver,
    TargetError,
    solve,
)

CHAIN = straight_chain(3)
TARGET = np.array([[0.0, 0.2, 0.1]])
FRACTIONS = [{"chunk": 0}, {"max_sweeps": 2.5}, {"restarts": 1.5}, {"chunk": 10.5}]


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"effectors": []}, TargetError, "There is no effector"),
        ({"effectors": [Effector("arm")]}, TargetError, "'arm' must be one of the skeleton's"),
        ({"effectors": [Effector("b2", weight=0.0)]}, TargetError, "weight 0.0"),
        ({"effectors": [Effector("b2", weight=np.nan)]}, TargetError, "weight nan"),
        (
            {"effectors": [Effector("b2", offset=(0, np.inf, 0))]},
            TargetError,
            "offset that must be three finite numbers",
        ),
        ({"targets": np.zeros((2, 3))}, TargetError, "shape (2, 3)"),
        ({"targets": np.array([[0, np.inf, 0]])}, TargetError, "infinite"),
        ({"effectors": [Effector("b2", rotation_weight=1.5)]}, TargetError, "rotation weight 1.5"),
        ({"effectors": [Effector("b2", rotation_weight=np.nan)]}, TargetError, "rotation weight nan"),
        ({"effectors": [Effector("b2", priority=0.5)]}, TargetError, "priority 0.5"),
        ({"effectors": [Effector("b2", target_bone="arm")]}, TargetError, "target bone 'arm'"),
        ({"effectors": [Effector("b2", target_bone="b2")]}, TargetError, "its own bone"),
        (
            {"effectors": [Effector("b2", target_bone="b0", target_offset=(0, np.nan, 0))]},
            TargetError,
            "target offset that must be three finite numbers",
        ),
        ({"target_rotations": np.ones((2, 4))}, TargetError, "target rotations have shape (2, 4)"),
        ({"target_rotations": np.zeros((1, 4))}, TargetError, "target rotation of effector 0"),
        ({"target_rotations": np.array([[np.inf, 0, 0, 0]])}, TargetError, "target rotation of effector 0"),
        ({"bend_targets": np.zeros((2, 3))}, TargetError, "bend targets have shape (2, 3)"),
        ({"bend_targets": np.array([[0, np.inf, 0]])}, TargetError, "bend target of effector 0 is infinite"),
        ({"start": np.zeros((3, 4))}, TargetError, "no length"),
        ({"start": np.ones((2, 4))}, TargetError, "start pose has shape (2, 4)"),
        ({"start_location": (0, 1)}, TargetError, "start_location has shape"),
        ({"start_location": (0, np.nan, 0)}, TargetError, "must be finite"),
        ({"limits": {"arm": Ball(0.5)}}, LimitError, "limit for bone 'arm'"),
        ({"limits": {"b0": 0.5}}, LimitError, "limit of bone 'b0' is 0.5"),
        ({"slides": {"arm": (0.9, 1.1)}}, LimitError, "slide for bone 'arm'"),
        ({"slides": {"b0": (1.1, 0.9)}}, LimitError, "slide of bone 'b0' is from 1.1 to 0.9"),
        ({"slides": {"b0": (0.0, 0.9)}}, LimitError, "above 0"),
        ({"slides": {"b0": (1.0, np.nan)}}, LimitError, "slide of bone 'b0'"),
        ({"slides": {"b0": 1.1}}, LimitError, "slide of bone 'b0' is 1.1"),
        ({"root": "LOOSE"}, OptionsError, "'LOOSE'"),
        ({"root": np.zeros(2)}, OptionsError, "it must be 'FIXED' or 'FREE'"),
        ({"effectors": [Effector("b2", offset=(0, 1))]}, TargetError, "offset that must be three finite numbers"),
        ({"effectors": [Effector("b2", offset="tip")]}, TargetError, "offset that must be three finite numbers"),
        ({"effectors": [Effector("b2", priority=np.nan)]}, TargetError, "priority nan"),
        ({"effectors": [Effector("b2", priority=np.inf)]}, TargetError, "priority inf"),
        ({"targets": np.full((1, 3), 1e160)}, TargetError, "target of effector 0 is infinite or too far"),
        ({"bend_targets": np.full((1, 3), 1e160)}, TargetError, "bend target of effector 0 is infinite or too far"),
    ],
)
def test_bad_input_is_refused(arguments, error, sentence):
    given = {"effectors": [Effector("b2")], "targets": TARGET, **arguments}
    with pytest.raises(error) as caught:
        solve(CHAIN, **given)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("weights", [[-1.0], [np.nan], [np.inf]])
def test_weights_of_a_solve_are_checked(weights):
    with pytest.raises(TargetError, match="a number of 0 or more"):
        Solver(CHAIN, [Effector("b2")]).solve(TARGET, weights=weights)


def test_a_bone_without_length_cannot_slide():
    skeleton = from_joints([("a", -1, (0, 0, 0), (0, 0, 0)), ("b", 0, (0, 0, 0), (0, 1, 0))])
    with pytest.raises(LimitError, match="'a' has no length"):
        solve(skeleton, [Effector("b")], TARGET, slides={"a": (0.9, 1.1)})


def test_a_skeleton_has_bones_and_knows_their_names():
    with pytest.raises(SkeletonError, match="no bones"):
        Skeleton([], [], np.zeros((0, 4, 4)), [])
    with pytest.raises(SkeletonError, match="no bone named 'arm'"):
        CHAIN.index("arm")


@pytest.mark.parametrize("wrong", [{"tolerance": 0.0}, {"tolerance": np.nan}, {"max_sweeps": -1}, *FRACTIONS])
def test_options_are_checked(wrong):
    with pytest.raises(OptionsError):
        Options(**wrong)


@pytest.mark.parametrize("arguments", [(1.0, None), (1.0, 0.5), (np.ones((2, 2)),), (None,)])
def test_a_limit_that_is_none_is_refused_in_one_line(arguments):
    with pytest.raises(LimitError) as caught:
        Ball(*arguments)
    assert "\n" not in str(caught.value)


def test_effectors_may_come_from_an_iterator():
    given = [Effector("b1"), Effector("b2")]
    targets = np.array([[0.05, 0.15, 0.0], TARGET[0]])
    expected = solve(CHAIN, given, targets)
    assert solve(CHAIN, (effector for effector in given), targets).tails == pytest.approx(expected.tails)


@pytest.mark.parametrize("limits", [{}, {"b1": Hinge("X", 0.0, 1.0)}])
def test_zero_frames_are_accepted(limits):
    solution = solve(CHAIN, [Effector("b2")], np.empty((0, 1, 3)), limits=limits)
    assert solution.rotations.shape == (0, 3, 4)
    assert solution.tails.shape == (0, 3, 3)
