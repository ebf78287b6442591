"""One factor between rig and recording, from distances that no pose changes."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrik_addon.core import Skeleton
from fabrik_addon.markers.calibrate.size import points_on, rigid_pairs, uniform_scale

# Hips, and below them a left leg of connected bones and a right thigh.
NAMES = ["hips", "thigh.L", "thigh.R", "shin.L", "foot.L"]
HEADS = {"hips": (0.0, 1.0), "thigh.L": (0.1, 1.0), "thigh.R": (-0.1, 1.0), "shin.L": (0.1, 0.5), "foot.L": (0.1, 0.1)}
LENGTHS = [0.2, 0.5, 0.5, 0.4, 0.2]


def leg(apart: float = 0.0) -> Skeleton:
    """The bones of a leg. `apart`: the distance of the shin and the foot from the tails of the bones above."""
    rest = np.tile(np.eye(4), (len(NAMES), 1, 1))
    for bone, name in enumerate(NAMES):
        x, z = HEADS[name]
        rest[bone, :3, 3] = (x + apart * {"shin.L": 1.0, "foot.L": 2.0}.get(name, 0.0), 0.0, z)
        if bone:
            rest[bone, :3, :3] = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]
    return Skeleton(NAMES, [-1, 0, 0, 1, 3], rest, LENGTHS)


def pairs_of(*points: tuple[str, str], apart: float = 0.0) -> set[tuple[int, int]]:
    """The rigid pairs of points on these (bone, point)."""
    skeleton = leg(apart)
    places = {"HEAD": 0.0, "TAIL": 1.0, "OFFSET": 0.6}
    bones = [skeleton.index(bone) for bone, _ in points]
    offsets = np.array([[0.0, places[point] * skeleton.lengths[skeleton.index(bone)], 0.0] for bone, point in points])
    return set(rigid_pairs(skeleton, bones, points_on(skeleton.rest[None], bones, offsets)[0]))


class TestRigidPairs:
    def test_everything_on_one_bone(self) -> None:
        points = [("shin.L", "HEAD"), ("shin.L", "TAIL"), ("shin.L", "OFFSET")]
        assert pairs_of(*points) == {(0, 1), (0, 2), (1, 2)}

    def test_a_head_is_fixed_to_the_parent(self) -> None:
        assert pairs_of(("hips", "OFFSET"), ("thigh.L", "HEAD")) == {(0, 1)}
        assert pairs_of(("hips", "OFFSET"), ("thigh.L", "TAIL")) == set()
        assert pairs_of(("hips", "OFFSET"), ("shin.L", "HEAD")) == set()

    def test_two_heads_on_one_parent(self) -> None:
        assert pairs_of(("thigh.L", "HEAD"), ("thigh.R", "HEAD")) == {(0, 1)}

    def test_both_ends_of_a_bone_by_heads_alone(self) -> None:
        assert pairs_of(("thigh.L", "HEAD"), ("shin.L", "HEAD"), ("foot.L", "HEAD")) == {
            (0, 1),
            (1, 2),
        }

    def test_both_ends_of_a_bone_by_tails_alone_if_connected(self) -> None:
        tails = [("thigh.L", "TAIL"), ("shin.L", "TAIL"), ("foot.L", "TAIL")]
        assert pairs_of(*tails) == {(0, 1), (1, 2)}
        assert pairs_of(*tails, apart=0.05) == set()

    def test_rigid_pairs_keep_their_distance_in_every_pose(self) -> None:
        """A chain in the plane in random poses: rigid pairs are those whose distance does not change."""
        bones = ["a", "b", "c"]
        mapped = [(bone, point) for bone in bones for point in ("HEAD", "TAIL", "OFFSET")]
        rng = np.random.default_rng(3)
        frames = []
        for _ in range(5):
            head, angle, found = 0j, 0.0, {}
            for bone in bones:
                angle += rng.uniform(-2, 2)
                turn = complex(math.cos(angle), math.sin(angle))
                tail = head + turn
                found |= {(bone, "HEAD"): head, (bone, "TAIL"): tail}
                found[bone, "OFFSET"] = head + (0.3 + 0.2j) * turn
                head = tail
            frames.append([found[key] for key in mapped])
        places = np.array(frames)
        kept = {
            (i, j) for i, j in combinations(range(len(mapped)), 2) if np.ptp(abs(places[:, i] - places[:, j])) < 1e-9
        }
        rest = np.tile(np.eye(4), (3, 1, 1))
        rest[:, 1, 3] = range(3)
        chain = Skeleton(bones, [-1, 0, 1], rest, [1.0, 1.0, 1.0])
        offsets = {"HEAD": (0.0, 0.0, 0.0), "TAIL": (0.0, 1.0, 0.0), "OFFSET": (-0.2, 0.3, 0.0)}
        on = [bones.index(bone) for bone, _ in mapped]
        points = np.array([offsets[point] for _, point in mapped]) + rest[on, :3, 3]
        assert set(rigid_pairs(chain, on, points)) == kept


def turned_and_moved(points: np.ndarray, seed: int) -> np.ndarray:
    """The points (M, 3) after some rigid motion."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return points @ turn.T + rng.normal(size=3)


SHAPE = np.array([[0.0, 0, 0], [0.4, 0, 0], [0.4, 0.3, 0], [0.1, 0.2, 0.5], [0.0, 0.3, 0.1]])
ALL_PAIRS = tuple(combinations(range(5), 2))


class TestUniformScale:
    @given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 10_000))
    def test_the_scale_of_a_moved_copy_is_found(self, scale: float, seed: int) -> None:
        positions = np.array([turned_and_moved(SHAPE, seed + k) / scale for k in range(3)])
        assert uniform_scale(SHAPE, ALL_PAIRS, positions) == pytest.approx(scale, rel=1e-9)

    @given(seed=st.integers(0, 10_000), share=st.floats(0.0, 0.6))
    def test_unseen_samples_are_ignored(self, seed: int, share: float) -> None:
        positions = np.array([turned_and_moved(SHAPE, seed + k) / 2.5 for k in range(30)])
        away = np.random.default_rng(seed).uniform(size=positions.shape[:2]) < share
        positions[away] = np.nan
        assert uniform_scale(SHAPE, ALL_PAIRS, positions) == pytest.approx(2.5, rel=1e-9)

    def test_some_bad_frames_and_one_bad_marker_do_not_matter(self) -> None:
        positions = np.array([turned_and_moved(SHAPE, k) for k in range(21)])
        positions[:8] *= 7.0
        positions[:, 4] += [50.0, 0.0, 0.0]
        positions[20, 1] = np.inf
        assert uniform_scale(SHAPE, ALL_PAIRS, positions) == pytest.approx(1.0, rel=1e-9)

    def test_noise(self) -> None:
        rng = np.random.default_rng(5)
        positions = np.array([turned_and_moved(SHAPE, k) for k in range(200)]) / 1.3
        positions += rng.normal(scale=0.005, size=positions.shape)
        assert uniform_scale(SHAPE, ALL_PAIRS, positions) == pytest.approx(1.3, rel=2e-3)

    def test_long_pairs_weigh_more_than_short_ones(self) -> None:
        rest = np.array([[0, 0, 0], [1.0, 0, 0], [0, 0.1, 0], [0, 0.2, 0]])
        positions = rest.copy()
        positions[1, 0] = 0.5
        positions[2:, 1] = [0.3, 0.7]
        pairs = [(0, 1), (0, 2), (2, 3)]
        assert uniform_scale(rest, pairs, positions[None]) == pytest.approx(2.0)

    def test_pairs_at_one_point_are_left_out(self) -> None:
        rest = np.array([[0, 0, 0], [0, 0, 0], [0, 1.0, 0]])
        positions = np.array([[[0, 0, 0], [0, 0, 0.3], [0, 2.0, 0]]])
        assert uniform_scale(rest, [(0, 1), (0, 2)], positions) == pytest.approx(0.5)

    @pytest.mark.parametrize(
        ("pairs", "positions"),
        [
            ((), SHAPE[None]),
            (ALL_PAIRS, np.full((4, 5, 3), np.nan)),
            (ALL_PAIRS, np.zeros((0, 5, 3))),
            (ALL_PAIRS, np.ones((4, 5, 3))),
        ],
        ids=["no-pairs", "unseen", "no-frames", "one-point"],
    )
    def test_sizes_that_cannot_be_measured(self, pairs: tuple[tuple[int, int], ...], positions: np.ndarray) -> None:
        assert uniform_scale(SHAPE, pairs, positions) is None
