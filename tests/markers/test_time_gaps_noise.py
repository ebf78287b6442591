"""Another rate, gaps and noise: visible samples are kept, missing ones are not invented, and nothing moves in time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fabrik_addon.markers.clip import Clip, ClipError, true_spans
from fabrik_addon.markers.signals import bridge, low_pass, resample, retimed


def clip_of(positions: np.ndarray, rate: float = 60.0) -> Clip:
    names = tuple(f"M{place}" for place in range(positions.shape[1]))
    return Clip(names, rate, positions, "Z")


def times_of(clip: Clip) -> np.ndarray:
    """The seconds from the first frame to each frame."""
    return np.arange(clip.frame_count) / clip.rate


def smooth(times: np.ndarray) -> np.ndarray:
    """(F, 2, 3) two markers that swing at up to 1.3 Hz."""
    waves = [np.sin(2 * np.pi * (0.4 + 0.18 * k) * times + k) * (0.2 + 0.1 * k) for k in range(6)]
    return np.stack(waves, axis=-1).reshape(len(times), 2, 3)


@st.composite
def recordings(draw: st.DrawFn) -> Clip:
    """Up to 40 frames of up to 3 markers with gaps anywhere."""
    shape = draw(st.tuples(st.integers(1, 40), st.integers(1, 3)))
    positions = draw(arrays(np.float64, (*shape, 3), elements=st.floats(-3, 3, width=32)))
    positions[~draw(arrays(np.bool_, shape, elements=st.booleans()))] = np.nan
    return clip_of(positions)


class TestResample:
    @given(recordings(), st.sampled_from([24.0, 25.0, 30.0, 59.94, 90.0, 120.0, 240.0]))
    def test_a_sample_is_seen_only_between_seen_ones(self, clip: Clip, rate: float) -> None:
        again = resample(clip, rate)
        assert again.frame_count == int((clip.frame_count - 1) * rate / clip.rate + 1e-6) + 1
        where = np.arange(again.frame_count) * clip.rate / rate
        low, high = np.floor(where + 1e-6).astype(int), np.ceil(where - 1e-6).astype(int)
        np.testing.assert_array_equal(again.seen, clip.seen[low] & clip.seen[high])
        on = np.abs(where - np.rint(where)) < 1e-6
        np.testing.assert_array_equal(again.positions[on], clip.positions[np.rint(where[on]).astype(int)])

    @given(recordings())
    def test_doubling_and_halving_the_rate_gives_the_same(self, clip: Clip) -> None:
        np.testing.assert_array_equal(resample(resample(clip, 120.0), 60.0).positions, clip.positions)

    @pytest.mark.parametrize("power", [0, 1, 2])
    def test_parabolas_are_followed_exactly(self, power: int) -> None:
        times = np.arange(30) / 60.0
        clip = clip_of(np.repeat(times**power, 6).reshape(30, 2, 3))
        again = resample(clip, 77.0)
        inner = (times_of(again) >= 1 / 60) & (times_of(again) <= 28 / 60)
        expected = times_of(again)[inner] ** power
        np.testing.assert_allclose(again.positions[inner, 0, 0], expected, atol=1e-12)

    def test_motion_is_followed_closely(self) -> None:
        clip = clip_of(smooth(np.arange(120) / 60.0))
        again = resample(clip, 144.0)
        np.testing.assert_allclose(again.positions, smooth(times_of(again)), atol=1e-3)
        # Straight lines between samples would have larger errors.
        bends = np.abs(np.diff(clip.positions, 2, axis=0)).max() / 8.0
        inner = slice(5, -5)
        assert np.abs(again.positions - smooth(times_of(again)))[inner].max() < 0.1 * bends

    def test_a_clip_is_retimed_as_chosen(self) -> None:
        clip = clip_of(smooth(np.arange(61) / 60.0))
        kept = retimed(clip, 24.0, "KEEP_TIME")
        assert (kept.rate, kept.frame_count) == (24.0, 25)
        np.testing.assert_allclose(kept.positions[-1], clip.positions[-1])
        assert retimed(clip, 24.0, "KEEP_FRAMES") is clip
        assert retimed(clip, 24.0, "SET_SCENE_RATE") is clip


class TestShortGaps:
    @given(recordings(), st.integers(0, 10))
    def test_which_gaps_are_filled(self, clip: Clip, longest: int) -> None:
        done = bridge(clip.positions, clip.rate, longest)
        np.testing.assert_array_equal(done[clip.seen], clip.positions[clip.seen])
        expected = clip.seen.copy()
        for marker in range(len(clip.names)):
            for first, end in true_spans(~clip.seen[:, marker]):
                if first > 0 and end < clip.frame_count and end - first <= longest:
                    expected[first:end, marker] = True
        np.testing.assert_array_equal(~np.isnan(done).any(axis=-1), expected)

    @given(recordings())
    def test_speeds_at_a_gap_do_not_move_markers_far(self, clip: Clip) -> None:
        """A cubic with equal ends moves at most 4/27 of the distance that its end slopes would cover.

        A marker that is seen on one frame only before or after the gap takes the slope of a parabola there.
        """
        done = bridge(clip.positions, clip.rate, clip.frame_count)
        for marker in range(len(clip.names)):
            track = clip.positions[:, marker]
            for first, end in true_spans(~clip.seen[:, marker]):
                if first == 0 or end == len(track):
                    continue
                ends, inside = track[[first - 1, end]], done[first:end, marker]
                unseen, across = np.full(3, np.nan), (ends[1] - ends[0]) / (end - first + 1)
                leaving = track[first - 1] - track[first - 2] if first > 1 else unseen
                coming = track[end + 1] - track[end] if end + 1 < len(track) else unseen
                slopes = [
                    np.where(np.isnan(own), 2.0 * across - other, own)
                    for own, other in ((leaving, coming), (coming, leaving))
                ]
                room = 0.25 * clip.rate * np.nan_to_num(np.abs(slopes)).sum(axis=0) * 4.0 / 27.0 + 1e-9
                assert (inside >= ends.min(axis=0) - room).all()
                assert (inside <= ends.max(axis=0) + room).all()

    def test_a_marker_does_not_run_away_in_a_long_gap(self) -> None:
        """A marker that leaves at 3 m/s for two seconds is displaced by at most a quarter of a second's motion."""
        positions = np.zeros((140, 1, 3))
        positions[:10, 0, 0] = np.arange(-9, 1) * 0.05
        positions[10:130] = np.nan
        done = bridge(positions, 60.0, 120)
        farthest = done[10:130, 0, 0].max()
        assert farthest > 0.05
        assert farthest < 3.0 * 0.25 * 4.0 / 27.0 + 1e-9

    def test_a_marker_that_moves_on_is_followed_without_a_jump(self) -> None:
        positions = smooth(np.arange(120) / 60.0)
        hidden = positions.copy()
        hidden[40:46] = np.nan
        done = bridge(hidden, 60.0, 6)
        share = (np.arange(40, 46) - 39)[:, None, None] / 7.0
        straight = (1.0 - share) * positions[39] + share * positions[46]
        off = np.abs(done[40:46] - positions[40:46]).max()
        assert off < 0.01
        assert off < 0.4 * np.abs(straight - positions[40:46]).max()
        steps = np.abs(np.diff(done, axis=0)).max(axis=(1, 2))
        assert steps.max() < 1.5 * np.abs(np.diff(positions, axis=0)).max()

    def test_uniform_motion_continues_through_a_gap(self) -> None:
        positions = np.linspace(0.0, 1.0, 30)[:, None, None] * np.ones((1, 1, 3))
        hidden = positions.copy()
        hidden[4:25] = np.nan
        np.testing.assert_allclose(bridge(hidden, 60.0, 21), positions, atol=1e-12)

    def test_no_frames(self) -> None:
        assert bridge(np.zeros((0, 2, 3)), 60.0, 5).shape == (0, 2, 3)


class TestLowPass:
    @pytest.mark.parametrize("share", [0.25, 0.8, 1.0, 1.5, 3.0])
    def test_each_frequency_keeps_its_share_and_its_phase(self, share: float) -> None:
        """Compared with Butterworth's formula: 6 Hz at 120 Hz, over whole swings."""
        times = np.arange(2401) / 120.0
        wave = np.sin(2 * np.pi * 6.0 * share * times)
        gain = 1.0 / np.sqrt(1.0 + share**8)
        smoothed = low_pass(np.repeat(wave, 3).reshape(-1, 1, 3), 120.0, 6.0)
        np.testing.assert_allclose(smoothed[:, 0, 0], gain * wave, atol=2e-3)

    @given(recordings(), st.floats(0.5, 29.0))
    def test_missing_samples_stay_missing(self, clip: Clip, cutoff: float) -> None:
        smoothed = low_pass(clip.positions, clip.rate, cutoff)
        np.testing.assert_array_equal(~np.isnan(smoothed).any(axis=-1), clip.seen)

    @given(recordings(), st.floats(1.0, 20.0))
    def test_filtering_is_the_same_forward_and_backward(self, clip: Clip, cutoff: float) -> None:
        """The filter adds no delay: reversed input gives reversed output."""
        forth, back = (low_pass(clip.positions[::way], clip.rate, cutoff)[::way] for way in (1, -1))
        np.testing.assert_allclose(back, forth, atol=1e-9)

    def test_uniform_motion_does_not_change(self) -> None:
        positions = np.linspace(-1.0, 2.0, 50)[:, None, None] * np.array([[[1.0, -2.0, 0.5]]])
        np.testing.assert_allclose(low_pass(positions, 60.0, 5.0), positions, atol=1e-12)

    def test_noise_is_removed_and_motion_kept(self) -> None:
        rng = np.random.default_rng(4)
        clean = smooth(np.arange(1200) / 120.0)
        noisy = clean + rng.normal(0.0, 0.002, clean.shape)
        hidden = rng.random(clean.shape[:2]) < 0.2
        noisy[hidden] = np.nan
        done = low_pass(noisy, 120.0, 6.0)
        seen = ~hidden
        before, after = (np.sqrt(np.mean((found[seen] - clean[seen]) ** 2)) for found in (noisy, done))
        assert after < 0.5 * before

    def test_a_long_gap_separates_its_sides(self) -> None:
        positions = np.zeros((200, 1, 3))
        positions[120:] = 1.0
        positions[80:120] = np.nan
        done = low_pass(positions, 60.0, 6.0)
        np.testing.assert_allclose(done[:80], 0.0, atol=1e-12)
        np.testing.assert_allclose(done[120:], 1.0, atol=1e-12)
        assert true_spans(np.isnan(done[:, 0, 0])) == [(80, 120)]

    @pytest.mark.parametrize("cutoff", [-1.0, 30.0, 500.0, np.nan, np.inf])
    def test_invalid_cutoffs(self, cutoff: float) -> None:
        with pytest.raises(ClipError, match="less than half the rate"):
            low_pass(np.zeros((5, 1, 3)), 60.0, cutoff)

    def test_without_a_cutoff_nothing_changes(self) -> None:
        positions = smooth(np.arange(20) / 60.0)
        np.testing.assert_array_equal(low_pass(positions, 60.0, 0.0), positions)

    def test_no_frames(self) -> None:
        assert low_pass(np.zeros((0, 2, 3)), 60.0, 6.0).shape == (0, 2, 3)
