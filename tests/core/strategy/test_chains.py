"""A chain's pose computed with mathutils equals the one computed with arrays. With weights, arrays are used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rigs import from_joints, random_rotations

from fabrik_addon.core import Effector, Options, Solution, Solver, Status, TargetError

pytest.importorskip("mathutils", reason="mathutils comes with Blender")
pytestmark = pytest.mark.one_pose

OPTIONS = [Options(), Options(tolerance=1e-5), Options(finish=False, max_sweeps=40), Options(plain=True, max_sweeps=40)]
# Rounds of the exact finish, each of three sweeps and at most eight steps.
MOST_EXACT = 12 * (3 + 8)


@st.composite
def chains(draw):
    """A chain of 1 to 12 bones, straight or not, some of them without length or rotation from their parent."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 12))
    steps = rng.normal(size=(count, 3)) if draw(st.booleans()) else np.tile([0.0, 1.0, 0.0], (count, 1))
    steps *= (rng.uniform(0.2, 1.0, count) / np.linalg.norm(steps, axis=1))[:, None]
    steps[1:][rng.random(count - 1) < 0.1] = 0.0
    ends = np.vstack([rng.normal(size=3), steps]).cumsum(axis=0)
    return from_joints([(f"b{i}", i - 1, ends[i], ends[i + 1]) for i in range(count)]), rng


def both_ways(skeleton, options, target, **start):
    solver = Solver(skeleton, [Effector(skeleton.names[-1])], options=options)
    return solver.solve(target, **start), solver.solve(target, weights=[1.0], **start)


def check_alike(skeleton, options, short, general):
    size = skeleton.lengths.sum()
    assert short.status == general.status
    # The numbers of steps may differ, because only one of them is in double precision.
    by_sweeps = options.plain or not options.finish
    assert max(short.iterations, general.iterations) <= (options.max_sweeps if by_sweeps else MOST_EXACT)
    assert np.abs(short.errors - general.errors).max() < 2e-6 * size
    assert np.abs(short.tails - general.tails).max() < 1e-4 * size
    for name in Solution.FRAME_ARRAYS:
        one, other = getattr(short, name), getattr(general, name)
        assert (one.shape, one.dtype, type(one)) == (other.shape, other.dtype, type(other))


# Not at the root and not exactly at full reach, because rounding would decide there.
shares = st.floats(0.01, 1.3).filter(lambda share: abs(share - 1.0) > 1e-5)


@pytest.mark.one_blender
@given(made=chains(), options=st.sampled_from(OPTIONS), share=shares, posed=st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_fast_path_gives_the_same_result_as_the_general_one(made, options, share, posed):
    skeleton, rng = made
    direction = rng.normal(size=3)
    location = rng.normal(size=3) if posed else skeleton.rest[0, :3, 3]
    target = location + direction / np.linalg.norm(direction) * share * skeleton.lengths.sum()
    turns = random_rotations(rng, (len(skeleton),), 1.0)
    start = {"start": turns, "start_location": location} if posed else {}
    check_alike(skeleton, options, *both_ways(skeleton, options, target[None], **start))


def test_a_met_target_does_not_change_the_pose():
    skeleton = from_joints([("a", -1, (0, 0, 0), (0, 1, 0)), ("b", 0, (0, 1, 0), (1, 1, 0))])
    short, general = both_ways(skeleton, Options(), [[1.0, 1.0, 0.0]])
    check_alike(skeleton, Options(), short, general)
    assert short.iterations == 0
    assert (short.rotations == [1.0, 0.0, 0.0, 0.0]).all()


def test_unsupported_problems_take_the_general_path():
    skeleton = from_joints([("a", -1, (0, 0, 0), (0, 1, 0)), ("b", 0, (0, 1, 0), (0, 2, 0))])
    solver = Solver(skeleton, [Effector("b")])
    assert solver.solve([[np.nan, 0.0, 0.0]]).status == Status.UNSEEN
    assert solver.solve([[[0.0, 1.0, 0.5]]]).rotations.shape == (1, 2, 4)
    with pytest.raises(TargetError, match="infinite"):
        solver.solve([[np.inf, 0.0, 0.0]])
    with pytest.raises(TargetError, match="no length"):
        solver.solve([[0.0, 1.0, 0.5]], start=np.zeros((2, 4)))


def test_solutions_do_not_share_their_arrays():
    skeleton = from_joints([("a", -1, (0, 0, 0), (0, 1, 0)), ("b", 0, (0, 1, 0), (0, 2, 0))])
    solver = Solver(skeleton, [Effector("b")])
    first = solver.solve([[0.0, 1.0, 0.5]])
    expected = {name: np.array(getattr(first, name)) for name in Solution.FRAME_ARRAYS}
    for name in ("rotations", "root_location", "lengths"):
        getattr(first, name)[:] = 9.0
    again = solver.solve([[0.0, 1.0, 0.5]])
    for name, value in expected.items():
        assert np.array_equal(getattr(again, name), value, equal_nan=True)
