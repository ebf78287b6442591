"""File formats are detected from the content, and performers are separated."""

import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support import walker
from support.c3d_files import LABELS, C3d, standing
from support.keypoints import array, csv_text, person
from support.recordings import recording

from fabrik_addon.markers.clip import Clip, ClipError, MarkerFileError, to_z_up
from fabrik_addon.markers.files.any_file import SUFFIXES, performers, read_markers, select_performer

_LIMBS = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle")
COCO = ["nose", *(f"{side}_{part}" for part in ("eye", "ear", *_LIMBS) for side in ("left", "right"))]
DATA = Path(os.environ.get("FABRIK_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))

TRC = (
    "PathFileType\t4\t(X/Y/Z)\ta.trc\nDataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\n100\t100\t1\t1\tmm\n"
    "Frame#\tTime\tA\t\t\n\t\tX1\tY1\tZ1\n\n1\t0\t1\t2\t3\n"
)


def clip_of(*names: str) -> Clip:
    """Two frames in which each marker has a different position."""
    return Clip(names, 100.0, standing(2, len(names)) / 1000.0, "Z")


class TestReadMarkers:
    @pytest.mark.parametrize("name", ["a.trc", "a.TRC", "a.c3d", "a.txt", "a"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
    def test_a_trc_file_of_any_name(self, tmp_path: Path, name: str, encoding: str) -> None:
        (tmp_path / name).write_bytes(TRC.encode(encoding))
        assert read_markers(tmp_path / name).names == ("A",)

    @pytest.mark.parametrize("name", ["a.c3d", "a.C3D", "a.trc", "a.bin"])
    def test_a_c3d_file_of_any_name(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(C3d().bytes())
        assert read_markers(str(tmp_path / name)).names == LABELS

    @pytest.mark.parametrize("end", [b"\0" * 512, b"\x1a"])
    def test_text_that_was_not_saved_completely(self, tmp_path: Path, end: bytes) -> None:
        """A disk that was full, or a crash, leaves zero bytes; DOS ends text with Ctrl Z."""
        (tmp_path / "a.trc").write_bytes(TRC.encode() + end)
        (tmp_path / "b.trc").write_text(TRC)
        whole = read_markers(tmp_path / "b.trc")
        np.testing.assert_array_equal(read_markers(tmp_path / "a.trc").positions, whole.positions)

    def test_overrides_are_passed_on(self, tmp_path: Path) -> None:
        for name, content in (("a.trc", TRC.encode()), ("a.c3d", C3d().bytes())):
            (tmp_path / name).write_bytes(content)
            plain, told = read_markers(tmp_path / name), read_markers(tmp_path / name, units="cm", up_axis="Y")
            np.testing.assert_allclose(told.positions, 10.0 * plain.positions)
            assert (told.units, told.up_axis) == ("cm", "Y")

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.trc", b"hello", r"^a\.trc: this is not a TRC file"),
            ("a.c3d", b"hello", r"^a\.c3d: this is not a C3D file"),
            ("a.txt", b"some text", r"^a\.txt: this is not a TRC/C3D/CSV/NPY/NPZ file: choose one of these formats$"),
            (
                "a.fbx",
                b"Kaydara FBX",
                r"^a\.fbx: it has an armature instead of markers: import it with File . Import, then retarget",
            ),
            (
                "a.bvh",
                b"HIERARCHY",
                r"^a\.bvh: it has an armature instead of markers: import it with File . Import, then retarget",
            ),
            ("a.txt", b"", r"^a\.txt: the file is empty: choose another$"),
        ],
    )
    def test_refused(self, tmp_path: Path, name: str, content: bytes, message: str) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(MarkerFileError, match=message):
            read_markers(tmp_path / name)

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(MarkerFileError, match=r"^gone\.c3d: there is no such file"):
            read_markers(tmp_path / "gone.c3d")

    def test_every_real_file(self) -> None:
        paths = [path for path in DATA.glob("*") if path.suffix in SUFFIXES and path.name != "Analysis.c3d"]
        if not paths:
            pytest.skip(f"there are no files in {DATA}")
        for path in paths:
            clip = read_markers(path)
            assert clip.seen.any(axis=0).sum() >= 16, path.name
            assert performers(clip) == ()
            # No recording is as large as a gymnasium, or as small as a doll.
            extent = np.nanmax(clip.positions, axis=(0, 1)) - np.nanmin(clip.positions, axis=(0, 1))
            assert 1.0 < extent.max() < 8.0, path.name


def trc_of(names: Sequence[str], points: np.ndarray, units: str = "m", number: str = "{:.5f}") -> str:
    """The text of a TRC file; points (F, M, 3) in its units."""
    lines = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "DataRate\tNumFrames\tNumMarkers\tUnits"]
    lines += [f"100\t{len(points)}\t{len(names)}\t{units}", "Frame#\tTime\t" + "\t\t\t".join(names), ""]
    for frame, one in enumerate(points):
        lines.append("\t".join([str(frame + 1), f"{frame / 100}", *map(number.format, one.ravel())]))
    return "\n".join(lines) + "\n"


def test_memory_while_reading_is_three_times_that_of_text_and_positions(tmp_path: Path) -> None:
    """Rows are kept as arrays: Python's own numbers in lists would need 32 bytes each instead of 8."""
    names, path, needed = list(walker.marker_names()), tmp_path / "a.trc", list[int]()
    for frames in (50, 200):
        path.write_text(trc_of(names, 1000.0 * walker.true_positions()[:frames], "mm"))
        tracemalloc.start()
        clip = read_markers(path)
        needed.append(tracemalloc.get_traced_memory()[1] - 3 * (path.stat().st_size + clip.positions.nbytes))
        tracemalloc.stop()
    assert needed[1] < needed[0]


class TestNoPositions:
    """Numbers that writers use for missing samples."""

    @pytest.mark.parametrize("filler", [9999999.0, 999999.0, -9999.0, 999.999, -1.0, 0.0, 1e30])
    @pytest.mark.parametrize("suffix", [".trc", ".c3d", ".csv", ".npy"])
    def test_fillers_of_missing_positions_are_not_seen(self, tmp_path: Path, filler: float, suffix: str) -> None:
        names = list(walker.marker_names())
        points = 1000.0 * walker.true_positions()[:20]
        hidden = np.zeros(points.shape[:2], dtype=bool)
        hidden[4:9, 3], hidden[12:, 7] = True, True
        points[hidden] = filler
        path = tmp_path / f"a{suffix}"
        if suffix == ".trc":
            path.write_text(trc_of(names, points, "mm"))
        elif suffix == ".c3d":
            path.write_bytes(C3d(labels=names, points=points).bytes())
        elif suffix == ".csv":
            path.write_text(csv_text(names, points))
        else:
            points = np.array(1000.0 * array(COCO, 20))
            points[hidden[:, : len(COCO)]] = filler
            np.save(path, points)
        clip = read_markers(path)
        np.testing.assert_array_equal(clip.seen, ~hidden[:, : len(clip.names)])

    def test_one_far_coordinate_is_enough(self, tmp_path: Path) -> None:
        points = 1000.0 * walker.true_positions()[:20]
        points[3, 2, 1] = 1e10
        (tmp_path / "a.trc").write_text(trc_of(walker.marker_names(), points, "mm"))
        assert np.argwhere(~read_markers(tmp_path / "a.trc").seen).tolist() == [[3, 2]]


class TestSize:
    """A person as large as a house or as small as a mouse gives a warning, since units are wrong."""

    @pytest.mark.parametrize("factor", [1e-3, 1e-2, 0.1, 10.0, 100.0, 1000.0])
    @pytest.mark.parametrize("prefixes", [("",), ("Anna:", "Bob:")])
    def test_wrong_units_give_a_warning(self, tmp_path: Path, factor: float, prefixes: tuple[str, ...]) -> None:
        points = walker.true_positions()[:10]
        names = [f"{prefix}{name}" for prefix in prefixes for name in walker.marker_names()]
        people = np.concatenate([points + np.array([4.0 * place, 0.0, 0.0]) for place in range(len(prefixes))], axis=1)
        path = tmp_path / "a.trc"
        path.write_text(trc_of(names, factor * people, number="{:.7f}"))
        doubts = read_markers(path).doubts
        assert len(doubts) == len(prefixes)
        assert all("choose units other than m if that is wrong" in doubt for doubt in doubts)
        path.write_text(trc_of(names, people))
        assert not read_markers(path).doubts

    @pytest.mark.parametrize("factor", [0.001, 0.1, 10.0, 25.4, 1000.0])
    @pytest.mark.parametrize("first", [15, 100, 170])
    def test_units_that_change_in_a_file_give_a_warning(self, tmp_path: Path, factor: float, first: int) -> None:
        points = walker.true_positions()[:200].copy()
        points[first:] *= factor
        path = tmp_path / "a.trc"
        path.write_text(trc_of(walker.marker_names(), points, number="{:.7f}"))
        doubts = [doubt for doubt in read_markers(path, up_axis="Z").doubts if "-fold during the recording" in doubt]
        (times,) = (float(doubt.split()[6].removesuffix("-fold")) for doubt in doubts)
        # The size of a person who walks changes by a few percent.
        assert times == pytest.approx(max(factor, 1.0 / factor), rel=0.1)

    def test_a_person_who_grows_is_doubted(self, tmp_path: Path) -> None:
        """As with a camera calibration that drifts, or keypoints of a video whose size changes."""
        points = walker.true_positions()[:200] * np.linspace(1.0, 1.2, 200)[:, None, None]
        path = tmp_path / "a.trc"
        path.write_text(trc_of(walker.marker_names(), points))
        assert any("changes 1.2-fold during the recording" in doubt for doubt in read_markers(path).doubts)

    @pytest.mark.parametrize("scales", [(1.0, 1.2, 1.0), (1.0, 1.0, 1.2), (1.0, 1.0, 0.8), (1.0, 1.0, 1.0)])
    @pytest.mark.parametrize("noise", [0.0, 0.003])
    def test_axes_of_different_scale_give_a_warning(
        self, tmp_path: Path, scales: tuple[float, ...], noise: float
    ) -> None:
        """Shins, thighs and forearms change their lengths as they swing; the limbs of a walker don't swing sideways."""
        points = walker.true_positions() * scales
        points += noise * np.random.default_rng(1).normal(size=points.shape)
        path = tmp_path / "a.trc"
        path.write_text(trc_of(walker.marker_names(), points, number="{:.6f}"))
        doubts = "".join(read_markers(path, up_axis="Z").doubts)
        assert ("check that all axes have the same scale" in doubts) == (scales != (1.0, 1.0, 1.0))

    def test_limbs_that_do_not_change_together_are_not_doubted(self, tmp_path: Path) -> None:
        """As with keypoints of a video, whose legs are too short while they point at the camera."""
        names, points = walker.marker_names(), walker.true_positions()[:200].copy()
        below = [place for place, name in enumerate(names) if name[1:] in ("ANK", "HEE", "TOE", "MT5", "HLX")]
        points[100:, below] += 0.15 * np.array([0.0, 0.0, 1.0])
        path = tmp_path / "a.trc"
        path.write_text(trc_of(names, points))
        assert not any("-fold during the recording" in doubt for doubt in read_markers(path, up_axis="Z").doubts)

    def test_stray_and_hidden_markers_do_not_change_the_size(self, tmp_path: Path) -> None:
        points = walker.true_positions()[:200].copy()
        points[20:120, 5] += 40.0
        points[100:180, 10:] = np.nan
        path = tmp_path / "a.trc"
        path.write_text(trc_of(walker.marker_names(), points))
        assert not any("-fold during the recording" in doubt for doubt in read_markers(path, up_axis="Z").doubts)

    def test_children_and_raised_arms_give_no_warning(self, tmp_path: Path) -> None:
        for factor in (0.4, 1.3):
            path = tmp_path / "a.trc"
            path.write_text(trc_of(walker.marker_names(), factor * walker.true_positions()[:10]))
            assert not read_markers(path).doubts

    def test_objects_may_have_any_size(self, tmp_path: Path) -> None:
        path = tmp_path / "a.trc"
        path.write_text(trc_of([f"Crane{number}" for number in range(12)], 100.0 * standing(3, 12)))
        assert not read_markers(path).doubts


class TestFrozen:
    """A marker that keeps its last position while the person moves is left out. It spoiled the calibration."""

    @pytest.mark.parametrize("labels", ["T10", "T10 LSHO", "LFHD RFHD RBHD", "LTHI", "LTHI LKNE", "LFHD RASI"])
    @pytest.mark.parametrize("span", [slice(0, 200), slice(40, 160)])
    def test_left_out_while_the_others_move(self, tmp_path: Path, labels: str, span: slice) -> None:
        names, points = walker.marker_names(), walker.true_positions()[:200].copy()
        frozen = [names.index(label) for label in labels.split()]
        points[span, frozen] = points[span.start, frozen]
        path = tmp_path / "a.trc"
        path.write_text(trc_of(names, points))
        clip = read_markers(path)
        assert clip.doubts == ()
        wanted = np.ones((200, len(names)), dtype=bool)
        wanted[span, frozen] = False
        np.testing.assert_array_equal(clip.seen, wanted)
        listed = ", ".join(names[place] for place in frozen)
        note = f"left out positions that stay the same while the other markers move: {listed}"
        assert clip.notes == (note,)

    @pytest.mark.parametrize("decimals", [2, 4])
    def test_not_on_planted_feet(self, tmp_path: Path, decimals: int) -> None:
        """Rounded positions stay the same for a while. People who stand still do not move at all."""
        walk, path = walker.true_positions()[:200], tmp_path / "a.trc"
        still = np.repeat(walk[:1], 150, axis=0)
        # Someone who bows, with both feet on the floor.
        bowing = still.copy()
        bowing[:, walk[0, :, 2] > 0.6] += 0.6 * np.sin(np.linspace(0.0, 6.0, 150))[:, None, None] * [0.0, 1.0, -0.3]
        for points in (np.round(walk, decimals), still, bowing):
            path.write_text(trc_of(walker.marker_names(), points))
            assert read_markers(path).notes == ()
        # Keypoints have few points on a foot, so the other foot is among the nearest.
        names = [name for name in person() if not any(part in name for part in ("eye", "ball", "toe"))]
        path.write_text(trc_of(names, np.round(array(names, 80), decimals)))
        assert read_markers(path).notes == ()


def labels_and_places(name: str, frames: int) -> tuple[list[str], np.ndarray]:
    """Labels and (F, M, 3) positions, Z up, of a recording; without a name, of the walk that tests make."""
    if not name:
        return walker.marker_names(), walker.true_positions()[:frames]
    if not (DATA / name).exists():
        pytest.skip(f"there are no files in {DATA}")
    clip = to_z_up(read_markers(DATA / name))
    return list(clip.names), clip.positions[:frames]


class TestMirrored:
    """Labels on the wrong side and mirrored positions give a warning. Motion alone may not show them."""

    @pytest.mark.parametrize("name", ["gait2354_subject01_walk1.trc", "Pose2Sim_markers.trc", "MACsample.c3d", ""])
    def test_swapped_sides_and_mirrored_axes(self, tmp_path: Path, name: str) -> None:
        names, points = labels_and_places(name, 50)
        other = {"L": "R", "R": "L", "l": "r", "r": "l"}
        swapped = [f"{other.get(label[0], label[0])}{label[1:]}" for label in names]
        path = tmp_path / "a.trc"
        for labels, places, doubted in (
            (names, points, False),
            (names, points * [-1.0, -1.0, 1.0], False),
            (swapped, points, True),
            (names, points * [-1.0, 1.0, 1.0], True),
        ):
            path.write_text(trc_of(labels, places))
            doubts = read_markers(path, up_axis="Z").doubts
            assert ["the labels swap left and right" in doubt for doubt in doubts] == [True] * doubted


class TestLimbsOfTheOtherSide:
    """Left and right are swapped on some limbs only, so the front of the body does not show it."""

    @pytest.mark.parametrize("name", ["gait2354_subject01_walk1.trc", "Pose2Sim_markers.trc", ""])
    def test_swapped_labels_of_arms_or_legs_give_a_warning(self, tmp_path: Path, name: str) -> None:
        names, points = labels_and_places(name, 100)
        other, path = {"L": "R", "R": "L"}, tmp_path / "a.trc"
        limbs = {
            "the arms": ("ELB", "UPA", "FRM", "WR", "FIN", "BICEP", "FOREARM"),
            "the legs": ("KNE", "ANK", "HEE", "TOE", "HLX", "TIB", "SHANK", "MID", "META", "MT"),
        }
        for wanted in (["the arms"], ["the legs"], []):
            parts = [part for limb in wanted for part in limbs[limb]]
            swapped = [
                f"{other.get(label[0], label[0])}{label[1:]}" if any(part in label.upper() for part in parts) else label
                for label in names
            ]
            path.write_text(trc_of(swapped, points))
            doubts = [doubt for doubt in read_markers(path, up_axis="Z").doubts if "swap left and right on" in doubt]
            assert doubts == [f"The labels of the person swap left and right on {limb}: rename them" for limb in wanted]
            # The labels are swapped on half of the frames only.
            old = [names.index(label) for label in swapped]
            path.write_text(trc_of(names, np.concatenate([points[:50], points[50:, old]])))
            assert doubts == [doubt for doubt in read_markers(path, up_axis="Z").doubts if "and right on" in doubt]

    def test_crossed_forearms_and_shins_give_no_warning(self, tmp_path: Path) -> None:
        """A person sits on the floor with crossed legs and folded arms; meters to the left, ahead and up."""
        left = {
            "shoulder": (0.18, 0.0, 0.5),
            "elbow": (0.22, 0.1, 0.25),
            "wrist": (-0.1, 0.25, 0.25),
            "pinky": (-0.16, 0.2, 0.24),
            "index": (-0.17, 0.22, 0.27),
            "thumb": (-0.13, 0.24, 0.29),
            "hip": (0.1, 0.0, 0.0),
            "knee": (0.3, 0.35, 0.1),
            "ankle": (-0.15, 0.3, 0.05),
            "heel": (-0.18, 0.27, 0.03),
            "foot_index": (-0.25, 0.4, 0.05),
        }
        names = [f"{side}_{name}" for side in ("left", "right") for name in left]
        points = np.array([*left.values(), *((-x, y - 0.02, z) for x, y, z in left.values())]) * (1.0, -1.0, 1.0)
        (tmp_path / "a.trc").write_text(trc_of(names, np.tile(points, (20, 1, 1))))
        assert not read_markers(tmp_path / "a.trc", up_axis="Z").doubts


class TestFall:
    """Nothing falls faster than by gravity, so a jump shows a wrong rate or wrong units."""

    @staticmethod
    def jump(speed: float) -> np.ndarray:
        """(150, M, 3) meters at 100 Hz: a person who stands, and leaves the floor at a speed, m/s."""
        since = np.arange(150) / 100.0 - 0.5
        height = np.maximum(0.0, speed * since - 0.5 * 9.81 * since**2) * (since > 0.0)
        return np.asarray(walker.true_positions()[:1] + height[:, None, None] * [0.0, 0.0, 1.0])

    # Rates of 2 and 3 times 100 Hz make falls 4 and 9 times as fast.
    @pytest.mark.parametrize("speed", [2.5, 3.5])
    @pytest.mark.parametrize(("rate", "times"), [(50.0, None), (100.0, None), (200.0, "4.0"), (300.0, "9.0")])
    def test_a_jump_at_other_rates(self, tmp_path: Path, speed: float, rate: float, times: str | None) -> None:
        path = tmp_path / "a.trc"
        path.write_text(trc_of(walker.marker_names(), self.jump(speed), number="{:.7f}"))
        falls = [doubt for doubt in read_markers(path, up_axis="Z", rate=rate).doubts if "gravity" in doubt]
        wanted = f"The body of the person falls at {times} times the acceleration of gravity: choose another frame rate"
        assert [doubt.startswith(wanted) for doubt in falls] == [True] * (times is not None)

    def test_a_short_part_of_a_walk_at_five_times_its_rate(self, tmp_path: Path) -> None:
        """Fixed: without three steps in a row there was no warning, since the swinging limbs do not fall."""
        (tmp_path / "a.trc").write_text(trc_of(walker.marker_names(), walker.true_positions()[:130]))
        for rate, doubted in ((walker.RATE, False), (5.0 * walker.RATE, True)):
            doubts = read_markers(tmp_path / "a.trc", up_axis="Z", rate=rate).doubts
            assert ["times the acceleration of gravity" in doubt for doubt in doubts] == [True] * doubted

    @pytest.mark.parametrize("noise", [0.01, 0.03])
    def test_noise_is_no_fall(self, tmp_path: Path, noise: float) -> None:
        points = walker.true_positions()[:150]
        points = points + np.random.default_rng(1).normal(scale=noise, size=points.shape)
        (tmp_path / "a.trc").write_text(trc_of(walker.marker_names(), points))
        assert not read_markers(tmp_path / "a.trc", up_axis="Z").doubts


class TestBreaks:
    """Frames that are not one motion at an even rate."""

    @pytest.mark.parametrize("far", [0.0, 0.05, 0.4, 1.65])
    def test_cuts_give_a_warning(self, tmp_path: Path, far: float) -> None:
        """Fixed: two cuts inside a take were baked as one motion, without a warning, and are no falls."""
        points = walker.true_positions()[:150].copy()
        points[50:120] += [far, 0.0, 0.5 * far]
        (tmp_path / "a.trc").write_text(trc_of(walker.marker_names(), points))
        wanted = "The body of the person jumps to another location, as at a cut, on frame 51, 121: "
        doubts = read_markers(tmp_path / "a.trc", up_axis="Z").doubts
        assert [doubt.startswith(wanted) for doubt in doubts] == [True] * (far > 0.1)

    def test_one_marker_that_jumps_is_no_cut(self, tmp_path: Path) -> None:
        points = walker.true_positions()[:150].copy()
        points[60:90, walker.marker_names().index("LASI")] += 0.8
        (tmp_path / "a.trc").write_text(trc_of(walker.marker_names(), points))
        assert not read_markers(tmp_path / "a.trc", up_axis="Z").doubts

    @pytest.mark.parametrize(("step", "doubted"), [(1.0, False), (0.97, False), (0.8, True), (0.5, True), (0.2, True)])
    def test_repeated_frames_give_a_warning(self, tmp_path: Path, step: float, doubted: bool) -> None:
        """Fixed: each frame twice at the same rate is half as fast. A person may stand still first."""
        points = walker.true_positions()[np.arange(0.0, 130.0, step).astype(int)]
        (tmp_path / "a.trc").write_text(trc_of(walker.marker_names(), np.append(points[:1].repeat(99, 0), points, 0)))
        doubts = [doubt for doubt in read_markers(tmp_path / "a.trc", up_axis="Z").doubts if "repeat the one" in doubt]
        # Fixed: of several equal frames in a row, only one was counted.
        repeats = 99 + len(points) - len(np.unique(points, axis=0))
        assert [doubt.partition(" ")[0] for doubt in doubts] == [str(repeats)] * doubted

    def test_markers_on_limbs_only(self, tmp_path: Path) -> None:
        """Fixed: without markers on the trunk, numpy warned about the median of an empty array."""
        names = walker.marker_names()
        own = [place for place, name in enumerate(names) if name[1:] in ("KNE", "ANK", "HEE", "TOE", "ELB", "WRA")]
        (tmp_path / "a.trc").write_text(trc_of([names[each] for each in own], walker.true_positions()[:60, own]))
        assert not read_markers(tmp_path / "a.trc", up_axis="Z").doubts


class TestWalk:
    """With a rate wrong by a factor of 2, the cadence is impossible for legs of this length."""

    @pytest.mark.parametrize("name", ["walk", "gait2354_subject01_walk1.trc", "PiG_Motion3_FF.c3d"])
    @pytest.mark.parametrize(
        ("factor", "doubted"), [(0.25, True), (0.5, True), (0.7, False), (1, False), (1.3, False), (2, True)]
    )
    def test_walks_at_other_rates(self, tmp_path: Path, name: str, factor: float, doubted: bool) -> None:
        path = tmp_path / "a.trc" if name == "walk" else recording(name)
        if name == "walk":
            path.write_text(trc_of(walker.marker_names(), walker.true_positions()))
        doubts = read_markers(path, rate=factor * read_markers(path).rate).doubts
        assert ["The walk of the person has " in doubt for doubt in doubts] == [True] * doubted

    @pytest.mark.parametrize("pace", [0.45, 1.0, 1.8])
    def test_short_steps_may_be_slow_or_quick(self, tmp_path: Path, pace: float) -> None:
        """Steps are half as long: feet and hips keep their height, and the body moves half as far in the same time."""
        points = walker.true_positions().copy()
        middle = points[:, :, 1:2].mean(axis=1, keepdims=True)
        points[:, :, 1:2] = 0.5 * (points[:, :, 1:2] - middle) + 0.5 * middle
        (tmp_path / "a.trc").write_text(trc_of(walker.marker_names(), points))
        # Such a walker's limbs are as short as those of a recording with a wrong scale.
        doubts = read_markers(tmp_path / "a.trc", up_axis="Z", rate=pace * walker.RATE).doubts
        assert not any("steps per second" in doubt for doubt in doubts)

    def test_runners_are_in_the_air(self, tmp_path: Path) -> None:
        """The walk at twice the cadence, with all markers 6 to 8 cm higher while the feet are nearest each other."""
        points = walker.true_positions().copy()
        feet = [walker.on_bones(f"foot.{side}", f"toe.{side}") for side in "LR"]
        apart = np.linalg.norm((points[:, feet[0]].mean(axis=1) - points[:, feet[1]].mean(axis=1))[:, :2], axis=1)
        flying = np.clip(2.0 - 4.0 * apart / apart.max(), 0.0, 1.0)
        points[..., 2] += 0.15 * flying[:, None]
        (tmp_path / "a.trc").write_text(trc_of(walker.marker_names(), points))
        doubts = read_markers(tmp_path / "a.trc", up_axis="Z", rate=1.6 * walker.RATE).doubts
        assert not any("steps per second" in doubt for doubt in doubts)


class TestTwoPeople:
    """Two people whose labels differ only by a number would be baked as one body."""

    @pytest.mark.parametrize("second", ["{}", "{}2", "{}_2"])
    def test_labels_that_occur_twice_far_apart_give_a_warning(self, tmp_path: Path, second: str) -> None:
        names, points = walker.marker_names(), walker.true_positions()[:40]
        path = tmp_path / "a.trc"
        both = [*names, *(second.format(name) for name in names)]
        for away, doubted in ((1.0, True), (0.03, False)):
            path.write_text(trc_of(both, np.concatenate([points, points + np.array([0.0, away, 0.0])], axis=1)))
            doubts = read_markers(path, up_axis="Z").doubts
            assert ["occur twice, far apart" in doubt for doubt in doubts] == [True] * doubted


class TestPerformers:
    def test_in_the_order_of_the_labels(self) -> None:
        clip = clip_of("Bob:LASI", "Anna:LASI", "Bob:RASI", "*12", "Prop")
        assert performers(clip) == ("Bob", "Anna")

    @pytest.mark.parametrize("sides", [("links", "rechts"), ("SX", "DX"), ("L", "R"), ("gauche", "droite")])
    def test_sides_of_any_language_are_not_performers(self, sides: tuple[str, str]) -> None:
        names = [f"{side}_{part}" for side in sides for part in ("Knee", "Ankle", "Shoulder", "Elbow", "Wrist")]
        assert performers(clip_of(*names)) == ()

    def test_a_performer_may_have_the_name_of_one_side(self) -> None:
        names = [f"{name}_{part}" for name in ("Li", "Wang") for part in ("C7", "T10", "CLAV", "STRN", "LASI")]
        assert performers(clip_of(*names)) == ("Li", "Wang")

    def test_recordings_without_performers(self) -> None:
        assert performers(clip_of("LASI", "RASI", "L_KNEE", ":X", "Y:")) == ()

    @pytest.mark.parametrize("prop", [["Box:corner"], ["Box:back"], [f"Chair:{n}" for n in range(6)]])
    def test_props_are_not_performers(self, prop: list[str]) -> None:
        """A performer has labels of a body, about as many as the others."""
        body = [
            "LASI",
            "RASI",
            "LPSI",
            "RPSI",
            "LKNE",
            "RKNE",
            "LANK",
            "RANK",
            "LHEE",
            "RHEE",
            "LTOE",
            "RTOE",
            "LSHO",
            "RSHO",
            "LELB",
            "RELB",
            "C7",
            "CLAV",
        ]
        assert performers(clip_of(*body, *prop)) == ()
        assert performers(clip_of(*(f"Anna:{label}" for label in body), *prop)) == ("Anna",)

    def test_unknown_labels(self) -> None:
        strange = [f"Q{n}Z" for n in range(20)]
        assert performers(clip_of(*strange, "Box:corner")) == ()
        both = [f"{name}:{label}" for name in ("Bob", "Anna") for label in strange]
        assert performers(clip_of(*both, "Box:corner")) == ("Bob", "Anna")

    def test_spaces_beside_the_colon_are_not_part_of_a_name(self) -> None:
        clip = clip_of("John Doe : LASI", "John Doe : RASI", "John Doe : LKNE")
        assert performers(clip) == ("John Doe",)
        assert select_performer(clip, "John Doe").names == ("LASI", "RASI", "LKNE")

    def test_the_markers_of_one_performer_are_selected(self) -> None:
        clip = clip_of("Bob:LASI", "Anna:LASI", "*12", "Bob:RASI")
        bob = select_performer(clip, "Bob")
        assert bob.names == ("LASI", "RASI")
        np.testing.assert_array_equal(bob.positions, clip.positions[:, [0, 3]])
        assert (bob.rate, bob.up_axis) == (clip.rate, clip.up_axis)
        assert performers(bob) == ()

    def test_performers_together_have_all_prefixed_markers(self) -> None:
        clip = clip_of("a:b:X", "a:Y", "a:b:Z", "c:X")
        assert performers(clip) == ("a:b", "a", "c")
        names = [f"{name}:{label}" for name in performers(clip) for label in select_performer(clip, name).names]
        assert sorted(names) == sorted(clip.names)

    def test_performers_by_prefixes_with_underscores(self) -> None:
        labels = ["LASI", "RASI", "LKNE", "RKNE", "LANK"]
        clip = clip_of(*(f"Anna_{label}" for label in labels), *(f"Bob_{label}" for label in labels), "Chair_1")
        assert performers(clip) == ("Anna", "Bob")
        assert select_performer(clip, "Bob").names == tuple(labels)

    def test_people_behind_the_prefix_of_a_session(self) -> None:
        labels = ["LASI", "RASI", "LKNE", "RKNE", "LANK"]
        clip = clip_of(*(f"Day1:{name}_{label}" for name in ("Anna", "Bob") for label in labels), "Box:corner")
        assert performers(clip) == ("Day1:Anna", "Day1:Bob")
        assert select_performer(clip, "Day1:Bob").names == tuple(labels)

    def test_sides_and_parts_are_not_performers(self) -> None:
        labels = ["ASIS", "PSIS", "KNEE", "ANKLE", "HEEL", "TOE"]
        assert performers(clip_of(*(f"{side}_{label}" for side in ("Left", "Right") for label in labels))) == ()
        clusters = [f"{part}_{number}" for part in ("Thigh", "Shank") for number in range(6)]
        assert performers(clip_of(*clusters)) == ()

    def test_an_unknown_performer(self) -> None:
        """Fixed: the message said "choose none" without saying why."""
        for names, advice in (
            (("LASI", "RASI"), ", because the labels name none: choose none"),
            (("Bob:LASI", "Anna:LASI"), ": choose Bob, Anna"),
        ):
            with pytest.raises(ClipError, match=f"^the recording: there is no performer 'Carl'{advice}$"):
                select_performer(clip_of(*names), "Carl")
