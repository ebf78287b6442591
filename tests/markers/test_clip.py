"""Clips: the up axis from the data, gaps, other rates, cutting."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrik_addon.markers.clip import Clip, ClipError, part_of, to_z_up, true_spans, up_axis_by_markers
from fabrik_addon.markers.signals import resample

# A person 1.75 m tall, arms hanging, Z up, looking along -Y: x, y, z in meters.
STANDING = np.array(
    [
        [0.00, -0.08, 1.75],  # forehead
        [0.00, 0.05, 1.50],  # neck
        [-0.20, 0.00, 1.45],  # shoulders
        [0.20, 0.00, 1.45],
        [-0.27, 0.02, 1.12],  # elbows
        [0.27, 0.02, 1.12],
        [-0.30, -0.08, 0.87],  # wrists
        [0.30, -0.08, 0.87],
        [-0.12, -0.05, 1.00],  # hips
        [0.12, -0.05, 1.00],
        [-0.10, -0.03, 0.50],  # knees
        [0.10, -0.03, 0.50],
        [-0.10, 0.00, 0.08],  # ankles
        [0.10, 0.00, 0.08],
        [-0.11, -0.20, 0.03],  # toes
        [0.11, -0.20, 0.03],
    ]
)
T_POSE = STANDING.copy()
T_POSE[4:8] = [[-0.5, 0, 1.45], [0.5, 0, 1.45], [-0.8, 0, 1.45], [0.8, 0, 1.45]]


def turned_about_z(points: np.ndarray, angle: float) -> np.ndarray:
    """The points (..., 3) after a yaw."""
    c, s = math.cos(angle), math.sin(angle)
    x, y, z = np.moveaxis(points, -1, 0)
    return np.stack((c * x - s * y, s * x + c * y, z), axis=-1)


def as_y_up(points: np.ndarray) -> np.ndarray:
    """Z-up points (..., 3) in a Y-up file's axes."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.stack((x, z, -y), axis=-1)


def clip_of(positions: np.ndarray, rate: float = 60.0, **others: object) -> Clip:
    """A clip with made-up names."""
    names = tuple(f"M{i}" for i in range(positions.shape[1]))
    return Clip(names, rate, positions, **others)  # type: ignore[arg-type]


class TestUpAxis:
    @given(
        yaw=st.floats(-math.pi, math.pi),
        place=st.tuples(st.floats(-5, 5), st.floats(-5, 5)),
        unit=st.sampled_from([1.0, 100.0, 1000.0]),
    )
    def test_a_standing_person_shows_the_up_axis(self, yaw: float, place: tuple[float, float], unit: float) -> None:
        person = unit * (turned_about_z(STANDING, yaw) + np.array([*place, 0.0]))[None]
        assert up_axis_by_markers(person) == "Z"
        assert up_axis_by_markers(as_y_up(person)) == "Y"
        assert up_axis_by_markers(as_y_up(person)) == "Y"

    @given(yaw=st.floats(-math.pi, math.pi), length=st.floats(0.0, 30.0))
    def test_the_direction_of_walking_does_not_matter(self, yaw: float, length: float) -> None:
        steps = np.linspace(0.0, length, 50)[:, None, None] * np.array([0.0, -1.0, 0.0])
        walk = turned_about_z(STANDING + steps, yaw)
        assert up_axis_by_markers(walk) == "Z"
        assert up_axis_by_markers(as_y_up(walk)) == "Y"

    @given(yaw=st.floats(-math.pi, math.pi))
    def test_arms_spread_over_the_origin(self, yaw: float) -> None:
        person = turned_about_z(T_POSE, yaw)[None]
        assert up_axis_by_markers(person) == "Z"
        assert up_axis_by_markers(as_y_up(person)) == "Y"

    def test_gaps_and_frames_with_nobody_do_not_matter(self) -> None:
        person = np.repeat(STANDING[None], 20, axis=0)
        person[3:9] = np.nan
        person[9:, ::3, 1] = np.nan
        assert up_axis_by_markers(person) == "Z"

    @pytest.mark.parametrize(
        "positions",
        [
            np.zeros((0, 5, 3)),
            np.full((4, 5, 3), np.nan),
            np.array([[[0.0, 0.0, 1.7]]]),
            np.array([[[0.0, 0.0, 0.0], [0.0, 0.0, 1.7]]]),
            np.ones((3, 6, 3)),
            # Lying along each horizontal axis of a Y-up and of a Z-up file, about the origin.
            (STANDING - [0.0, 0.0, 0.9])[None],
            (STANDING[:, [2, 1, 0]] - [0.9, 0.0, 0.0])[None],
            (STANDING[:, [0, 2, 1]] - [0.0, 0.9, 0.0])[None],
        ],
        ids=["no-frames", "unseen", "one", "two", "one-point", "along-z", "along-x", "along-y"],
    )
    def test_markers_that_do_not_show_the_axis(self, positions: np.ndarray) -> None:
        assert up_axis_by_markers(positions) is None

    def test_someone_who_lies_and_gets_up(self) -> None:
        """The few frames on which a person stands decide; those on which nobody does are ignored."""
        lying = STANDING[:, [0, 2, 1]] - [0.0, 0.9, 0.0]
        rising = np.concatenate((np.repeat(lying[None], 30, axis=0), np.repeat(STANDING[None], 4, axis=0)))
        assert up_axis_by_markers(rising) == "Z"
        assert up_axis_by_markers(as_y_up(rising)) == "Y"

    @pytest.mark.parametrize("part", [slice(1, 8), slice(3, 8, 2)], ids=["upper-body", "an-arm"])
    def test_a_part_of_a_body_that_travels(self, part: slice) -> None:
        """At any height above the floor, the axis of movement is horizontal."""
        steps = np.linspace(0.0, 3.0, 50)[:, None, None] * np.array([0.0, -1.0, 0.0])
        walk = (STANDING + steps)[:, part]
        assert up_axis_by_markers(walk) == "Z"
        assert up_axis_by_markers(as_y_up(walk)) == "Y"

    def test_someone_who_crawls(self) -> None:
        steps = np.linspace(0.0, 4.0, 50)[:, None, None] * np.array([0.0, -1.0, 0.0])
        crawl = STANDING[:, [0, 2, 1]] * [1.0, -1.0, 1.0] + [0.0, 0.9, 0.5] + steps
        assert up_axis_by_markers(crawl) == "Z"
        assert up_axis_by_markers(as_y_up(crawl)) == "Y"

    def test_a_person_lying_along_a_positive_axis_looks_upright(self) -> None:
        """A known weakness: the person seems to stand."""
        lying_in_a_y_up_file = STANDING[None]
        assert up_axis_by_markers(lying_in_a_y_up_file) == "Z"


class TestToZUp:
    def test_y_up_becomes_z_up(self) -> None:
        clip = to_z_up(clip_of(np.array([[[1.0, 2.0, 3.0]]]), up_axis="Y"))
        assert clip.up_axis == "Z"
        np.testing.assert_array_equal(clip.positions, [[[1.0, -3.0, 2.0]]])

    def test_is_a_rotation_that_undoes_y_up(self) -> None:
        clip = to_z_up(clip_of(as_y_up(STANDING)[None], up_axis="Y"))
        np.testing.assert_array_equal(clip.positions, STANDING[None])

    def test_z_up_stays(self) -> None:
        clip = clip_of(STANDING[None], up_axis="Z")
        assert to_z_up(clip) is clip


class TestSpans:
    @given(st.lists(st.booleans(), max_size=40))
    def test_spans_are_exactly_the_unseen_frames(self, unseen: list[bool]) -> None:
        spans = true_spans(np.array(unseen, dtype=bool))
        covered = [frame for first, end in spans for frame in range(first, end)]
        assert covered == [frame for frame, away in enumerate(unseen) if away]
        assert all(end < after for (_, end), (after, _) in pairwise(spans)), "neighboring spans must be one"

    def test_resampling_a_small_example(self) -> None:
        assert true_spans(np.array([True, False, True, True, False])) == [(0, 1), (2, 4)]


class TestResample:
    @given(
        count=st.integers(1, 200),
        old=st.sampled_from([23.976, 24.0, 29.97, 50.0, 59.94, 60.0, 100.0, 119.88, 250.0]),
        new=st.sampled_from([12.0, 23.976, 24.0, 25.0, 30.0, 60.0, 120.0, 1000.0]),
    )
    def test_a_steady_motion_stays_what_it_was_in_time(self, count: int, old: float, new: float) -> None:
        velocity = np.array([1.0, -2.0, 0.5])
        clip = clip_of((np.arange(count) / old)[:, None, None] * velocity, rate=old)
        again = resample(clip, new)
        assert again.rate == new
        times = np.arange(again.frame_count) / new
        expected = times[:, None, None] * velocity
        np.testing.assert_allclose(again.positions, expected, atol=1e-6 * count / old)
        # At the end, less than a frame is lost.
        duration = (count - 1) / old
        assert duration - 1 / new < times[-1] <= duration + 1e-6 / min(old, new)

    def test_resampling_whole_seconds_keeps_the_last_frame(self) -> None:
        positions = np.random.default_rng(1).normal(size=(151, 4, 3))
        again = resample(clip_of(positions), 24.0)
        assert again.frame_count == 61
        np.testing.assert_array_equal(again.positions[-1], positions[-1])

    @given(
        away=st.lists(st.booleans(), min_size=2, max_size=40),
        new=st.sampled_from([24.0, 30.0, 59.94, 60.0, 90.0, 120.0, 240.0]),
    )
    def test_no_samples_are_invented_in_a_gap(self, away: list[bool], new: float) -> None:
        positions = np.random.default_rng(len(away)).normal(size=(len(away), 1, 3))
        positions[np.array(away)] = np.nan
        again = resample(clip_of(positions), new)
        for frame, seen in enumerate(again.seen[:, 0]):
            at = frame * 60.0 / new
            around = {math.floor(at + 1e-5), math.ceil(at - 1e-5)}
            assert seen == (not any(away[frame] for frame in around))

    def test_resampling_up_and_down_restores_every_sample(self) -> None:
        positions = np.random.default_rng(2).normal(size=(37, 2, 3))
        positions[5:9, 0] = np.nan
        clip = clip_of(positions)
        np.testing.assert_allclose(resample(resample(clip, 180.0), 60.0).positions, positions)

    def test_no_frames(self) -> None:
        assert resample(clip_of(np.zeros((0, 2, 3))), 24.0).frame_count == 0

    @pytest.mark.parametrize("rate", [0.0, -24.0, math.nan, math.inf])
    def test_an_invalid_rate(self, rate: float) -> None:
        with pytest.raises(ClipError, match="frame rate"):
            resample(clip_of(STANDING[None]), rate)


class TestPart:
    def test_both_ends_are_kept(self) -> None:
        positions = np.arange(30.0).reshape(10, 1, 3)
        clip = part_of(clip_of(positions, rate=10.0), 3, 6)
        np.testing.assert_array_equal(clip.positions, positions[2:6])

    @pytest.mark.parametrize("last", [0, 10])
    def test_the_whole_recording_is_kept(self, last: int) -> None:
        clip = clip_of(np.arange(30.0).reshape(10, 1, 3))
        np.testing.assert_array_equal(part_of(clip, 1, last).positions, clip.positions)

    @pytest.mark.parametrize(("first", "last"), [(0, 4), (6, 5), (1, 11), (11, 11), (11, 0)])
    def test_missing_frames(self, first: int, last: int) -> None:
        with pytest.raises(
            ClipError, match=f"there are no frames {first} to {last or 10}: choose a range within 1 to 10"
        ):
            part_of(clip_of(np.zeros((10, 1, 3))), first, last)


class TestClip:
    def test_positions_are_a_copy_that_cannot_be_changed(self) -> None:
        mine = STANDING[None].copy()
        clip = clip_of(mine)
        mine[:] = 7.0
        np.testing.assert_array_equal(clip.positions, STANDING[None])
        with pytest.raises(ValueError, match="read-only"):
            clip.positions[0, 0, 0] = 1.0

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"positions": np.zeros((2, 3))}, r"\(2, 3\)"),
            ({"positions": np.zeros((2, 2, 3))}, r"positions of 1 markers"),
            ({"positions": np.full((2, 1, 3), np.inf)}, "finite"),
            ({"rate": 0.0}, "not 0.0"),
            ({"up_axis": "X"}, "not 'X'"),
        ],
    )
    def test_arrays_that_do_not_match_are_refused(self, change: dict[str, object], message: str) -> None:
        parts: dict[str, object] = {"names": ("A",), "rate": 60.0, "positions": np.zeros((2, 1, 3))}
        with pytest.raises(ClipError, match=message):
            Clip(**{**parts, **change})  # type: ignore[arg-type]
