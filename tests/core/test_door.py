"""The public interface of the core: any input works, or is refused with one sentence."""

import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.rigs import straight_chain

from fabrik_addon.core import (
    Ball,
    Effector,
    FabrikError,
    Fixed,
    Hinge,
    LimitError,
    Options,
    OptionsError,
    Polygon,
    Skeleton,
    SkeletonError,
    Solver,
    Status,
    TargetError,
    forward_kinematics,
    solve,
)
from fabrik_addon.core.model.effector import PosePrior

CHAIN = straight_chain(3)
TRIANGLE = [(-0.5, -0.5), (0.5, -0.4), (0.1, 0.6)]
TARGETS = np.array([[0.05, 0.2, 0.1], [0.0, 0.1, 0.0]])
NO_TURNS = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
FIXED = {"b1": Fixed()}
RAGGED = [[0.1, 0.2, 0.3], [0.1]]

# The valid values from which each argument is built.
USABLE = {
    Skeleton: {
        "names": ["a", "b"],
        "parents": [-1, 0],
        "rest": np.tile(np.eye(4), (2, 1, 1)),
        "lengths": [0.1, 0.2],
        "inherits_rotation": [True, False],
    },
    Effector: {
        "bone": "b2",
        "offset": (0.0, 0.1, 0.02),
        "weight": 1.0,
        "rotation_weight": 0.5,
        "priority": 0,
        "target_bone": "b0",
        "target_offset": (0.05, 0.0, 0.0),
    },
    Ball: {"cone": (0.5, 1.0, 0.4, 2.0), "twist": (-0.5, 0.5)},
    Hinge: {"axis": "X", "low": -0.5, "high": 2.0},
    Polygon: {"window": TRIANGLE, "twist": (-0.5, 0.5)},
    Options: {
        "tolerance": 1e-3,
        "max_sweeps": 20,
        "finish": True,
        "most_steps": 10,
        "plain": False,
        "restarts": 2,
        "repair_pops": True,
        "chunk": 3,
    },
    Solver: {
        "skeleton": CHAIN,
        "effectors": [Effector("b2", rotation_weight=0.5), Effector("b1", (0.02, 0.0, 0.0))],
        "limits": {"b0": Ball(1.0), "b1": Hinge("X", 0.0, 1.5)},
        "slides": {"b2": (0.9, 1.2)},
        "root": "FREE",
        "options": Options(restarts=2, most_steps=10),
    },
    Solver.solve: {
        "targets": TARGETS,
        "start": NO_TURNS,
        "start_location": (0.0, 0.0, 0.1),
        "weights": [1.0, 2.0],
        "target_rotations": NO_TURNS[:2],
        "bend_targets": TARGETS,
        "prior": PosePrior(NO_TURNS, np.full(3, 0.1)),
    },
    forward_kinematics: {
        "skeleton": CHAIN,
        "rotations": NO_TURNS,
        "root_location": (0.0, 0.0, 0.1),
        "lengths": CHAIN.lengths,
    },
}
# Shared arguments, without those that a call does not have.
SOLVE = USABLE[Solver] | {
    name: value for name, value in USABLE[Solver.solve].items() if name not in {"weights", "prior"}
}

NUMBERS = st.floats() | st.sampled_from([1e14, 1e15, 1e16, 1e150, 1e300, 1e-12, 1e-160, 1e-300, 5e-324])


@cache
def pieces():
    """Objects of all kinds that a caller may pass by mistake."""
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.sampled_from([10**30, -(10**400), 10**9]),
        st.floats(),
        st.sampled_from([1e15, 1e16, 1e160, 1e300, -1e300, 1e-300, 5e-324, 0.0, -0.0, np.inf, np.nan]),
        st.complex_numbers(max_magnitude=2.0),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=3),
        st.sampled_from(["a", "b2", "X", "FIXED", "1", b"1", "b\n2"]),
        st.sampled_from([np.float32(0.5), np.int8(1), np.bool_(True), np.float64(np.nan), Fraction(1, 2), object()]),
    )
    arrays = st.builds(
        lambda shape, kind, fill: np.full(shape, fill).astype(kind),
        st.lists(st.integers(0, 4), max_size=4).map(tuple),
        st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.complex128, object, str]),
        st.sampled_from([0.0, 1.0, 0.3, 2.0]),
    )
    lists = st.lists(scalars, max_size=4) | st.sampled_from(
        [RAGGED, [RAGGED], [[]], [[[]]], range(3), {1: 2}, {"b0": 1}]
    )
    made = st.sampled_from([CHAIN, Effector("b2"), [Effector("b1")], Fixed(), Options(), {"b1": Fixed()}, {"b0": None}])
    iterators = st.builds(lambda values: (value for value in values), st.lists(scalars, max_size=3))
    return st.one_of(scalars, arrays, lists, lists.map(tuple), made, iterators)


@st.composite
def spoiled(draw, usable):
    """A usable call with one argument, or one number in an argument, replaced by another object or number."""
    name = draw(st.sampled_from(sorted(usable)))
    value, how = usable[name], draw(st.sampled_from(["object", "entry", "scale", "shape"]))
    if isinstance(value, dict) and value and how != "object":
        return {**usable, name: {**value, draw(st.sampled_from(sorted(value))): draw(pieces())}}
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        how = "object"
    if how == "object" or not array.size:
        return {**usable, name: draw(pieces())}
    if how == "scale":
        with np.errstate(all="ignore"):
            return {**usable, name: array * draw(NUMBERS)}
    if how == "shape":
        return {
            **usable,
            name: draw(
                st.sampled_from([array[None], array[None][:0], array[..., :-1] if array.ndim else [], array.tolist()])
            ),
        }
    array.flat[draw(st.integers(0, array.size - 1))] = draw(NUMBERS)
    return {**usable, name: array if array.ndim else float(array)}


def is_one_sentence(text):
    return bool(text) and "\n" not in text and not text.endswith(".") and ". " not in text


def works_or_refuses(call):
    """The result of a call; None if it raises a FabrikError with one sentence. Any other error fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return call()
        except FabrikError as error:
            refusal = str(error)
    assert is_one_sentence(refusal), refusal
    return None


def is_usable(values):
    try:
        array = np.asarray(values)
    except ValueError:
        return False
    return array.dtype.kind in "fiu" and bool(np.isfinite(array).all())


def solved(solution):
    """A solution is finite, its rotations are unit quaternions, and the status is only SOLVED if errors are known."""
    if solution is None:
        return
    for values in (solution.rotations, solution.root_location, solution.lengths, solution.tails):
        assert np.isfinite(values).all()
    assert np.abs(np.linalg.norm(solution.rotations, axis=-1) - 1.0).max(initial=0.0) < 1e-6
    claimed = np.atleast_1d(solution.status == Status.SOLVED)
    errors = np.concatenate([np.atleast_2d(each) for each in (solution.errors, solution.rotation_errors)], axis=1)
    assert not np.isinf(errors).any()
    assert not np.isnan(errors[claimed]).all(axis=1).any()


OFTEN = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@OFTEN
@given(spoiled(USABLE[Skeleton]))
def test_skeleton(arguments):
    skeleton = works_or_refuses(lambda: Skeleton(**arguments))
    if skeleton is not None:
        solved(works_or_refuses(lambda: solve(skeleton, [Effector(skeleton.names[-1])], [[0.1, 0.05, 0.1]])))


@OFTEN
@given(spoiled(USABLE[Effector]))
def test_effector(arguments):
    solved(works_or_refuses(lambda: solve(CHAIN, [Effector("b1"), Effector(**arguments)], TARGETS)))


@pytest.mark.parametrize("kind", [Ball, Hinge, Polygon])
@OFTEN
@given(data=st.data())
def test_limits(kind, data):
    limit = works_or_refuses(lambda: kind(**data.draw(spoiled(USABLE[kind]))))
    if limit is not None:
        solved(works_or_refuses(lambda: solve(CHAIN, [Effector("b2")], TARGETS[:1], limits={"b1": limit})))
        assert np.isfinite(limit.sample(np.full((2, 3), 0.4))).all()


@OFTEN
@given(spoiled(USABLE[Options]))
def test_options(arguments):
    targets = np.stack([TARGETS[:1], TARGETS[1:], [[0.3, 0.3, 0.3]]])
    options = works_or_refuses(lambda: Options(**arguments))
    if options is not None:
        solved(works_or_refuses(lambda: solve(CHAIN, [Effector("b2")], targets, limits=FIXED, options=options)))


@OFTEN
@given(spoiled(USABLE[Solver]))
def test_solver(arguments):
    solver = works_or_refuses(lambda: Solver(**arguments))
    if solver is not None:
        solved(works_or_refuses(lambda: solver.solve(TARGETS[: len(solver.effectors)])))


@OFTEN
@given(spoiled(USABLE[Solver.solve]))
def test_a_solve_of_a_solver(arguments):
    solver = Solver(**USABLE[Solver])
    solved(works_or_refuses(lambda: solver.solve(**arguments)))


@OFTEN
@given(spoiled(SOLVE))
def test_solve(arguments):
    solved(works_or_refuses(lambda: solve(**arguments)))


@OFTEN
@given(spoiled(USABLE[forward_kinematics]))
def test_forward_kinematics(arguments):
    matrices = works_or_refuses(lambda: forward_kinematics(**arguments))
    usable = all(is_usable(value) for name, value in arguments.items() if name != "skeleton" and value is not None)
    if matrices is not None and usable:
        assert np.isfinite(matrices).all()


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (TargetError, {"targets": "x"}),
        (TargetError, {"targets": RAGGED}),
        (TargetError, {"targets": TARGETS[:1] + 1j}),
        (TargetError, {"targets": TARGETS[:1] > 0.0}),
        (TargetError, {"targets": [[None, 0.1, 0.2]]}),
        (TargetError, {"targets": [["0.1", "0.1", "0.2"]]}),
        (TargetError, {"effectors": ["b"]}),
        (TargetError, {"effectors": 5}),
        (TargetError, {"effectors": None}),
        (TargetError, {"effectors": [Effector("b2", weight=None)]}),
        (TargetError, {"effectors": [Effector("b2", weight="1")]}),
        (TargetError, {"effectors": [Effector("b2", weight=True)]}),
        (TargetError, {"effectors": [Effector(["b2"])]}),
        (TargetError, {"effectors": [Effector("b2", offset=(0.0, 1e300, 0.0))]}),
        (TargetError, {"effectors": [Effector("b2", priority=True), Effector("b1", priority="0")]}),
        (TargetError, {"start": RAGGED}),
        (TargetError, {"start": np.full((3, 4), np.nan)}),
        (TargetError, {"start_location": (0.0, 0.0, 1e300)}),
        (TargetError, {"target_rotations": "x"}),
        (TargetError, {"bend_targets": RAGGED}),
        (LimitError, {"limits": [1]}),
        (LimitError, {"limits": np.zeros(2)}),
        (LimitError, {"limits": {1: Fixed()}}),
        (LimitError, {"slides": {"b0": (None, 1)}}),
        (LimitError, {"slides": {"b0": (0.5, 1e300)}}),
        (LimitError, {"slides": [1, 2]}),
        (OptionsError, {"options": "x"}),
        (OptionsError, {"root": ["FIXED"]}),
        (SkeletonError, {"skeleton": "x"}),
    ],
)
def test_values_of_another_type_are_refused(error, arguments):
    usable = {"skeleton": CHAIN, "effectors": [Effector("b2")], "targets": TARGETS[:1]}
    with pytest.raises(error) as caught:
        solve(**{**usable, **arguments})
    assert is_one_sentence(str(caught.value))


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (OptionsError, lambda: Options(tolerance="1")),
        (OptionsError, lambda: Options(tolerance=None)),
        (OptionsError, lambda: Options(finish="no")),
        (OptionsError, lambda: Options(plain=None)),
        (OptionsError, lambda: Options(repair_pops=2)),
        (OptionsError, lambda: Options(chunk=True)),
        (LimitError, lambda: Hinge("X", 2.0, 1e300)),
        (LimitError, lambda: Hinge(["X"], 0.0, 1.0)),
        (LimitError, lambda: Hinge("X", "0", "1")),
        (LimitError, lambda: Ball("wide")),
        (LimitError, lambda: Ball(1.0, RAGGED)),
        (LimitError, lambda: Ball(True)),
        (LimitError, lambda: Polygon("window")),
        (LimitError, lambda: Polygon([(0.0, 0.0), (1.0,), (1.0, 1.0)])),
        (LimitError, lambda: Polygon([(0.0, 0.0), (1e-200, 0.0), (1.0, 1.0), (0.0, 1.0)])),
        (SkeletonError, lambda: Skeleton(["a"], [0.5], [np.eye(4)], [1.0])),
        (SkeletonError, lambda: Skeleton([1], [-1], [np.eye(4)], [1.0])),
        (SkeletonError, lambda: Skeleton(["a"], [-1], [np.eye(4)], [1e300])),
        (SkeletonError, lambda: Skeleton(["a"], [-1], [np.eye(4)], [1.0], ["yes"])),
        (SkeletonError, lambda: forward_kinematics(CHAIN, NO_TURNS, (0.0, 1.0))),
        (SkeletonError, lambda: forward_kinematics(CHAIN, NO_TURNS, lengths=RAGGED)),
        (TargetError, lambda: Solver(CHAIN, [Effector("b2")]).solve(TARGETS[:1], weights="1")),
        (TargetError, lambda: Solver(CHAIN, [Effector("b2")]).solve(TARGETS[:1], prior=NO_TURNS)),
    ],
)
def test_objects_with_values_of_another_type_are_refused(error, make):
    with pytest.raises(error) as caught:
        make()
    assert is_one_sentence(str(caught.value))


def test_numbers_of_numpy_are_accepted():
    """Scalars and arrays of shape () of any real type; lists, tuples and arrays of objects that are numbers."""
    plain = solve(
        CHAIN,
        [Effector("b2", (0.0, 0.1, 0.0), 2.0, 0.5, 1)],
        TARGETS[:1],
        limits={"b1": Hinge("X", 0.0, 1.0), "b0": Ball(1.0)},
        slides={"b2": (0.5, 2.0)},
        options=Options(tolerance=0.5**12, max_sweeps=9, finish=True),
    )
    other = solve(
        CHAIN,
        (Effector("b2", np.array([0.0, 0.1, 0.0]), np.float32(2.0), np.array(0.5), np.int8(1)) for _ in range(1)),
        TARGETS[:1].astype(object),
        limits={"b1": Hinge("X", np.int64(0), np.float32(1.0)), "b0": Ball(np.array(1))},
        slides={"b2": np.array([0.5, 2.0])},
        options=Options(tolerance=np.float16(0.5**12), max_sweeps=np.uint8(9), finish=np.bool_(True)),
    )
    assert other.rotations == pytest.approx(plain.rotations)
    assert other.lengths == pytest.approx(plain.lengths)


def test_zero_frames_are_accepted_with_any_other_arguments():
    solution = Solver(**USABLE[Solver]).solve(**{**USABLE[Solver.solve], "targets": np.empty((0, 2, 3))})
    assert solution.rotations.shape == (0, 3, 4)
