"""TRC files: valid ones, readable errors, and files that are refused with one sentence."""

import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.c3d_files import standing

from fabrik_addon.core.errors import FabrikError
from fabrik_addon.markers.clip import ClipError, MarkerFileError, to_z_up
from fabrik_addon.markers.files.any_file import read_markers

DATA = Path(os.environ.get("FABRIK_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))


@dataclass(frozen=True)
class Trc:
    """A TRC file to be written, so that a test changes only the part that it tests."""

    names: Sequence[str] = ("A", "B")
    rows: Sequence[Sequence[str]] = (
        ("1", "0.00", "100", "200", "300", "-400", "500", "-600"),
        ("2", "0.01", "101", "201", "301", "-401", "501", "-601"),
        ("3", "0.02", "102", "202", "302", "-402", "502", "-602"),
    )
    rate: str = "100"
    units: str = "mm"
    frame_count: str = "3"
    marker_count: str = "2"
    axis_line: bool = True
    blank_line: bool = True

    def text(self) -> str:
        keys = ["DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units"]
        lines = [
            ["PathFileType", "4", "(X/Y/Z)", "some.trc"],
            keys,
            [self.rate, self.rate, self.frame_count, self.marker_count, self.units],
            ["Frame#", "Time", *(cell for name in self.names for cell in (name, "", ""))],
        ]
        if self.axis_line:
            columns = range(1, len(self.names) + 1)
            lines.append(["", "", *(f"{axis}{n}" for n in columns for axis in "XYZ")])
        if self.blank_line:
            lines.append([])
        return "".join("\t".join(line) + "\n" for line in [*lines, *self.rows])


PLAIN = Trc()
PLAIN_METERS = np.array([[float(cell) for cell in row[2:]] for row in PLAIN.rows]).reshape(3, 2, 3) / 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "take.trc"


def written(path: Path, content: Trc | str | bytes) -> Path:
    """The path, after writing the content there as it is."""
    content = content.text() if isinstance(content, Trc) else content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def with_row(place: int, *cells: str) -> Trc:
    """The plain file with one row replaced."""
    rows = list(PLAIN.rows)
    rows[place] = cells
    return replace(PLAIN, rows=rows)


class TestPlain:
    def test_everything_in_it(self, path: Path) -> None:
        clip = read_markers(written(path, PLAIN))
        assert clip.names == ("A", "B")
        assert clip.rate == 100.0
        assert clip.units == "mm"
        assert clip.source == "take.trc"
        np.testing.assert_allclose(clip.positions, PLAIN_METERS, rtol=1e-15)

    def test_a_path_as_text(self, path: Path) -> None:
        assert read_markers(str(written(path, PLAIN))).names == ("A", "B")

    @pytest.mark.parametrize("axis_line", [True, False])
    @pytest.mark.parametrize("blank_line", [True, False])
    def test_header_of_four_to_six_lines(self, path: Path, axis_line: bool, blank_line: bool) -> None:
        content = replace(PLAIN, axis_line=axis_line, blank_line=blank_line)
        np.testing.assert_allclose(read_markers(written(path, content)).positions, PLAIN_METERS)

    @pytest.mark.parametrize("separator", [" ", "  ", ",", ";"])
    def test_cells_with_other_separators(self, path: Path, separator: str) -> None:
        """Without the blank cells that tabs leave, names follow each other."""
        lines = PLAIN.text().splitlines()
        packed = [separator.join(cell for cell in line.split("\t") if cell) for line in lines]
        clip = read_markers(written(path, "\n".join(packed) + "\n"))
        assert clip.names == ("A", "B")
        np.testing.assert_allclose(clip.positions, PLAIN_METERS)

    def test_rows_with_spaces_below_a_header_with_tabs(self, path: Path) -> None:
        lines = PLAIN.text().splitlines()
        rows = [line.replace("\t", " ") if line[:1].isdigit() and "mm" not in line else line for line in lines]
        np.testing.assert_allclose(read_markers(written(path, "\n".join(rows) + "\n")).positions, PLAIN_METERS)

    @pytest.mark.parametrize("kept", [slice(0, -1), slice(0, -3), slice(3, None)])
    def test_missing_cells_between_blanks_are_refused(self, path: Path, kept: slice) -> None:
        """The numbers that are left would move into the columns of other markers."""
        content = with_row(1, "2", "0.01", *PLAIN.rows[1][2:][kept]).text()
        rows = [line.replace("\t", " ") if line[:2] in ("1\t", "2\t", "3\t") else line for line in content.splitlines()]
        with pytest.raises(MarkerFileError, match=r"line 8 has [57] of 8 numbers, and spaces separate them"):
            read_markers(written(path, "\n".join(rows) + "\n"))

    @pytest.mark.parametrize("twice", [(0,), (1,), (0, 2), (0, 1, 2)])
    def test_repeated_frames_count_once(self, path: Path, twice: tuple[int, ...]) -> None:
        rows = [row for place, row in enumerate(PLAIN.rows) for _ in range(1 + (place in twice))]
        clip = read_markers(written(path, replace(PLAIN, rows=rows)))
        np.testing.assert_allclose(clip.positions, PLAIN_METERS)
        assert f"{len(twice)} frames occur more than once; used each of them once" in clip.notes
        assert clip.doubts == ()

    def test_other_rows_with_the_same_number_are_kept(self, path: Path) -> None:
        changed = with_row(1, *PLAIN.rows[0][:2], *PLAIN.rows[1][2:])
        np.testing.assert_allclose(read_markers(written(path, changed)).positions, PLAIN_METERS)

    def test_frames_in_reverse_order(self, path: Path) -> None:
        clip = read_markers(written(path, replace(PLAIN, rows=PLAIN.rows[::-1])))
        np.testing.assert_allclose(clip.positions, PLAIN_METERS)
        assert clip.notes == ("the frames were not in order; sorted them by their numbers",)
        assert (clip.rate, clip.doubts) == (100.0, ())

    def test_a_given_rate_is_used_without_a_warning(self, path: Path) -> None:
        for told in ("50", "none"):
            rows = [(frame, "0", *cells) for frame, _, *cells in PLAIN.rows] if told == "none" else PLAIN.rows
            clip = read_markers(written(path, replace(PLAIN, rate=told, rows=rows)), rate=120.0)
            assert (clip.rate, clip.doubts) == (120.0, ())

    @pytest.mark.parametrize("rate", [0.0, -5.0, float("nan")])
    def test_an_impossible_given_rate_is_refused(self, path: Path, rate: float) -> None:
        with pytest.raises(ClipError, match="frame rate must be a positive number"):
            read_markers(written(path, PLAIN), rate=rate)

    def test_decimal_commas_beside_semicolons(self, path: Path) -> None:
        content = PLAIN.text().replace("\t", ";").replace("0.0", "0,0")
        np.testing.assert_allclose(read_markers(written(path, content)).positions, PLAIN_METERS)

    @pytest.mark.parametrize(
        ("units", "meters"),
        [
            ("mm", 0.001),
            ("cm", 0.01),
            ("m", 1.0),
            ("M", 1.0),
            ("in", 0.0254),
            ("ft", 0.3048),
            ("Millimeters", 0.001),
            ("meters", 1.0),
            ('"mm"', 0.001),
        ],
    )
    def test_units(self, path: Path, units: str, meters: float) -> None:
        told = read_markers(written(path, replace(PLAIN, units=units)))
        overridden = read_markers(written(path, replace(PLAIN, units="cubits")), units=units)
        for clip in (told, overridden):
            np.testing.assert_allclose(clip.positions, PLAIN_METERS * 1000 * meters)
        assert told.units == overridden.units

    @pytest.mark.parametrize(
        ("keys", "values"),
        [
            ("DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits", "100.0\t\t100.0\t\t3\t\t2\tmm"),
            ("DataRate\t\tCameraRate\tNumFrames\tNumMarkers\tUnits", "100.0\t100.0\t3\t2\t\tmm"),
            ("DataRate CameraRate NumFrames NumMarkers Units", "100.0 100.0  3 2\tmm"),
        ],
    )
    def test_a_header_with_more_tabs_than_fields(self, path: Path, keys: str, values: str) -> None:
        lines = PLAIN.text().split("\n")
        lines[1:3] = keys, values
        clip = read_markers(written(path, "\n".join(lines)))
        assert (clip.rate, clip.units, clip.notes) == (100.0, "mm", ())
        np.testing.assert_allclose(clip.positions, PLAIN_METERS)

    def test_unlabeled_markers_do_not_show_the_up_axis(self, path: Path) -> None:
        """Reflections far below the floor would make the person seem to lie."""
        points = np.tile(standing(3, 6), (1, 2, 1))[..., [0, 2, 1]]
        points[:, 6:] = [0.0, -900.0, 0.0] + np.linspace(0.0, 3000.0, 6)[:, None] * [0.0, 0.0, 1.0]
        rows = [(str(frame), str(frame / 100), *map(str, one.ravel())) for frame, one in enumerate(points)]
        for names, up in ((("*1", "*2", "U_3", "*4", "*5", "*6"), "Y"), (tuple("GHIJKL"), "Z")):
            clip = read_markers(written(path, replace(PLAIN, names=(*"ABCDEF", *names), rows=rows)))
            assert clip.up_axis == up

    def test_someone_who_lies_still_does_not_show_the_up_axis(self, path: Path) -> None:
        """A doubt names the axis that was used; with a given axis there is none."""
        lying = [str(value) for place in range(-800, 1000, 300) for value in (place, 80, 80)]
        rows = [(str(frame + 1), f"{frame / 100:.2f}", *lying) for frame in range(3)]
        written(path, replace(PLAIN, names="ABCDEF", rows=rows, marker_count="6"))
        (doubt,) = read_markers(path).doubts
        assert doubt.startswith("The up axis is unknown; assumed Y: ")
        assert read_markers(path, up_axis="Z").doubts == ()

    def test_a_given_up_axis_is_used(self, path: Path) -> None:
        written(path, PLAIN)
        assert read_markers(path).up_axis == "Y"
        assert read_markers(path, up_axis="Z").up_axis == "Z"
        assert read_markers(path, up_axis="y").up_axis == "Y"

    def test_negative_start_time(self, path: Path) -> None:
        clip = read_markers(written(path, with_row(0, "-3", "-1.5", *"123456")))
        np.testing.assert_allclose(clip.positions[0].ravel(), np.arange(1.0, 7.0) / 1000.0)


coordinates = st.floats(-5000, 5000, allow_nan=False).filter(lambda value: value != 0.0)


@given(
    numbers=arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4), st.just(3)),
                   elements=coordinates),
    gaps=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 3))),
    gap_words=st.sampled_from([("", "", ""), ("NaN", "nan", "NAN"), ("0", "0.0", "-0"),
                               ("inf", "1", "1"), ("7", "", "7"), ("1.#QNAN", "-nan(ind)", "-")]),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"]),
    comma=st.booleans(),
    cut_blanks=st.booleans(),
    final_newline=st.booleans(),
)  # fmt: skip
def test_written_files_are_read(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: np.ndarray,
    gaps: set[tuple[int, int]],
    gap_words: tuple[str, str, str],
    newline: str,
    encoding: str,
    comma: bool,
    cut_blanks: bool,
    final_newline: bool,
) -> None:
    frames, markers, _ = numbers.shape
    gaps = {(f, m) for f, m in gaps if f < frames and m < markers} - {
        (0, 0),
        (frames - 1, markers - 1),
    }
    rows = []
    for frame in range(frames):
        cells = [str(frame + 1), repr(frame / 60)]
        for marker in range(markers):
            away = (frame, marker) in gaps
            cells += gap_words if away else map(repr, numbers[frame, marker].tolist())
        line = "\t".join(cells)
        rows.append((line.rstrip("\t") if cut_blanks else line).split("\t"))
    names = [f"Pié{marker}" for marker in range(markers)]
    content = Trc(names=names, rows=rows, rate="60.00", units="m", frame_count=str(frames))
    text = content.text()
    text = text.replace(".", ",") if comma and "1.#QNAN" not in gap_words else text
    text = (text if final_newline else text.rstrip("\n")).replace("\n", newline)
    path = written(tmp_path_factory.mktemp("trc") / "take.trc", text.encode(encoding))

    clip = read_markers(path)
    expected = numbers.copy()
    for frame, marker in gaps:
        expected[frame, marker] = np.nan
    np.testing.assert_array_equal(clip.positions, expected)
    assert clip.names == tuple(names)
    assert clip.rate == 60.0


class TestNames:
    def test_odd_labels_are_kept(self, path: Path) -> None:
        names = ["Subject:LASI", "L.ASIS", "*12", "*Unnamed_3", "Sacro médio"]
        rows = [("1", "0", *map(str, range(1, 16)))]
        clip = read_markers(written(path, replace(PLAIN, names=names, rows=rows)))
        assert clip.names == tuple(names)

    def test_latin_1(self, path: Path) -> None:
        # \x85 is a line break for str.splitlines, and part of a name in some code pages.
        content = replace(PLAIN, names=["Fuß", "Pi\x85"]).text().encode("latin-1")
        assert read_markers(written(path, content)).names == ("Fuß", "Pi\x85")

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["A", "A", "A"], ("A", "A_2", "A_3")),
            (["A", "A", "A_2"], ("A", "A_3", "A_2")),
            (["A_2", "A", "A"], ("A_2", "A", "A_3")),
            (["A", "", "C"], ("A", "*2", "C")),
        ],
    )
    def test_doubles_and_blanks(self, path: Path, names: list[str], expected: tuple[str, ...]) -> None:
        rows = [("1", "0", *"123456789"), ("2", "0.01", *"223456789")]
        clip = read_markers(written(path, replace(PLAIN, names=names, rows=rows)))
        assert clip.names == expected
        assert clip.positions[1, 0, 0] == 0.002

    @pytest.mark.parametrize("tail", ["", "\t", "\t\t", "\t\t\t\t\t\t"])
    def test_tabs_after_the_last_name(self, path: Path, tail: str) -> None:
        text = PLAIN.text().replace("B\t\t\n", f"B{tail}\n")
        assert read_markers(written(path, text)).names == ("A", "B")

    def test_more_columns_than_names(self, path: Path) -> None:
        rows = [("1", "0", *"123456789")]
        clip = read_markers(written(path, replace(PLAIN, axis_line=False, rows=rows)))
        assert clip.names == ("A", "B", "*3")
        np.testing.assert_allclose(clip.positions[0, 2], [0.007, 0.008, 0.009])

    def test_a_named_marker_that_is_never_seen(self, path: Path) -> None:
        clip = read_markers(written(path, replace(PLAIN, names=["A", "B", "C"])))
        assert clip.names == ("A", "B", "C")
        assert not clip.seen[:, 2].any()
        np.testing.assert_allclose(clip.positions[:, :2], PLAIN_METERS)


class TestRows:
    def test_a_sample_with_one_coordinate_missing_is_missing(self, path: Path) -> None:
        clip = read_markers(written(path, with_row(1, "2", "0.01", "1", "", "3", "4", "5", "6")))
        np.testing.assert_array_equal(clip.seen, [[True, True], [False, True], [True, True]])
        assert np.isnan(clip.positions[1, 0]).all()

    def test_only_the_exact_origin_is_missing(self, path: Path) -> None:
        clip = read_markers(written(path, with_row(1, "2", "0.01", *"000", "0", "0", "0.001")))
        np.testing.assert_array_equal(clip.seen[1], [False, True])

    @pytest.mark.parametrize("end", ["\n", "\t\t\t\n"])
    def test_short_rows_lack_their_last_markers(self, path: Path, end: str) -> None:
        text = PLAIN.text().replace("\t-401\t501\t-601\n", end)
        clip = read_markers(written(path, text))
        np.testing.assert_array_equal(clip.seen, [[True, True], [True, False], [True, True]])

    def test_a_frame_on_which_nothing_is_seen_stays_a_frame(self, path: Path) -> None:
        clip = read_markers(written(path, with_row(1, "2", "0.01")))
        assert clip.frame_count == 3
        assert not clip.seen[1].any()

    def test_blank_lines_are_no_frames(self, path: Path) -> None:
        text = PLAIN.text().replace("\n2\t", "\n\n\t\t\t\n2\t") + "\n \n"
        np.testing.assert_allclose(read_markers(written(path, text)).positions, PLAIN_METERS)

    def test_infinite_is_not_seen_and_logged(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            clip = read_markers(written(path, with_row(1, "2", "0.01", "inf", *"23", *"456")))
        np.testing.assert_array_equal(clip.seen[1], [False, True])
        assert "take.trc: 1 samples are infinite" in caplog.text

    @pytest.mark.parametrize("dropped", range(1, 1 + len("\t".join(PLAIN.rows[-1]))))
    def test_a_file_cut_anywhere_in_its_last_row(self, path: Path, dropped: int) -> None:
        """All values that are read are correct: a truncated number never becomes a position."""
        text = replace(PLAIN, frame_count="500").text().removesuffix("\n")[:-dropped]
        clip = read_markers(written(path, text))
        whole = PLAIN_METERS[: clip.frame_count]
        assert clip.seen[:2].all()
        np.testing.assert_allclose(clip.positions[clip.seen], whole[clip.seen])
        assert not clip.seen[2:, 1].any()

    def test_the_last_frame_counts_without_a_final_newline(self, path: Path) -> None:
        text = PLAIN.text().removesuffix("\n")
        np.testing.assert_allclose(read_markers(written(path, text)).positions, PLAIN_METERS)

    def test_text_among_the_numbers_is_named(self, path: Path) -> None:
        content = with_row(1, "2", "0.01", "1", "2", "3", "4", "five", "6")
        with pytest.raises(
            MarkerFileError, match=r"^take\.trc: line 8, column 7: 'five' is not a number: export it again$"
        ):
            read_markers(written(path, content))


class TestLies:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"frame_count": "500"}, "gives 500 frames, but there are only 3"),
            ({"marker_count": "41"}, "gives 41 markers, but there are 2"),
            ({"rate": "50"}, "two frame rates, 50 and 100 Hz"),
        ],
    )
    def test_wrong_counts_are_only_logged(
        self, path: Path, caplog: pytest.LogCaptureFixture, change: dict[str, str], said: str
    ) -> None:
        with caplog.at_level(logging.WARNING):
            clip = read_markers(written(path, replace(PLAIN, **change)))  # type: ignore[arg-type]
        np.testing.assert_allclose(clip.positions, PLAIN_METERS)
        assert said in caplog.text
        assert said in " ".join((*clip.notes, *clip.doubts))

    def test_times_that_are_rounded_to_milliseconds_agree_with_the_rate(self, path: Path) -> None:
        rows = [("1", "0.000", *"123456"), ("2", "0.004", *"123456")]
        clip = read_markers(written(path, replace(PLAIN, rows=rows, frame_count="2", rate="240")))
        assert (clip.rate, clip.doubts) == (240.0, ())

    def test_a_correct_file_gives_no_note(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            read_markers(written(path, PLAIN))
        assert not caplog.records

    def test_uneven_frame_numbers_are_logged(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        rows = [(str(frame), str(frame / 100), *"123456") for frame in (1, 2, 3, 7, 8)]
        with caplog.at_level(logging.WARNING):
            clip = read_markers(written(path, replace(PLAIN, rows=rows, frame_count="5")))
        np.testing.assert_array_equal(clip.seen.all(axis=1), [1, 1, 1, 0, 0, 0, 1, 1])
        assert clip.notes == ("3 frames are missing; left gaps for them",)

    @pytest.mark.parametrize("numbers", [(1, 2, 3, 3, 4), (5, 4, 3, 2, 1), (1, 2, 3, 4, 90_000_000), (0, 0, 0, 0, 0)])
    def test_rows_count_if_frame_numbers_do_not(self, path: Path, numbers: Sequence[int]) -> None:
        rows = [(str(frame), str(place / 100), *"123456") for place, frame in enumerate(numbers)]
        clip = read_markers(written(path, replace(PLAIN, rows=rows, frame_count="5")))
        assert (clip.frame_count, clip.rate) == (5, 100.0)
        assert clip.notes == ("the frame numbers are not evenly spaced; used every row as one frame",)

    def test_rate_from_times_in_milliseconds(self, path: Path) -> None:
        rows = [(str(k), str(20 * k), *"123456") for k in range(1, 30)]
        assert read_markers(written(path, replace(PLAIN, rate="", rows=rows))).rate == pytest.approx(50.0)

    @pytest.mark.parametrize("rate", ["0", "", "-60", "nan", "fast"])
    def test_rate_from_the_times(self, path: Path, rate: str) -> None:
        rows = [(str(k), f"{k / 60:.3f}", *"123456") for k in range(1, 152)]
        clip = read_markers(written(path, replace(PLAIN, rate=rate, rows=rows)))
        assert clip.rate == pytest.approx(60.0, rel=1e-3)

    def test_rate_from_times_with_rows_left_out(self, path: Path) -> None:
        kept = [k for k in range(1, 200) if k % 7]
        rows = [(str(k), repr(k / 50), *"123456") for k in kept]
        assert read_markers(written(path, replace(PLAIN, rate="0", rows=rows))).rate == pytest.approx(50)

    def test_rate_of_every_other_frame(self, path: Path) -> None:
        rows = [(str(k), repr(k / 50), *"123456") for k in range(0, 40, 2)]
        assert read_markers(written(path, replace(PLAIN, rate="0", rows=rows))).rate == pytest.approx(25)


class TestRefused:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "the file is empty"),
            (" \n\t\n", "the file is empty"),
            ("\ufeff", "not a TRC file"),
            ("hello\n", "not a TRC file"),
            (b"\x02Q\x00\xff\xfeC3D" * 40, "not a TRC file"),
            ("PathFileType\t4\n", "header is truncated"),
            ("\n".join(PLAIN.text().split("\n")[:2]), "header is truncated"),
            ("\n".join(PLAIN.text().split("\n")[:3]), "header is truncated"),
            ("\n".join(PLAIN.text().split("\n")[:4]), "no frames after the header"),
            ("\n".join(PLAIN.text().split("\n")[:6]), "no frames after the header"),
            (PLAIN.text().replace("DataRate", "Speed"), "header is truncated"),
            (replace(PLAIN, rows=[]), "no frames after the header"),
            (replace(PLAIN, names=[], axis_line=False), "no marker names after tabs"),
            (replace(PLAIN, units="furlongs"), "the units 'furlongs' are not known"),
            (replace(PLAIN, units=""), "the header has no units"),
            (replace(PLAIN, rate="0", rows=PLAIN.rows[:1]), "frame rate is unknown: choose one"),
            (replace(PLAIN, rate="", rows=PLAIN.rows[:1]), "frame rate is unknown: choose one"),
            (replace(PLAIN, rate="0", rows=[PLAIN.rows[0]] * 3), "frame rate is unknown"),
            (replace(PLAIN, rows=[("1", "0", *"000", *"000")]), "no marker is visible"),
            (replace(PLAIN, rows=[("1", "0", *["NaN"] * 6)]), "no marker is visible"),
            (with_row(1, "2", "0.01", *"1234567"), "7 columns of numbers for 2 names"),
            (PLAIN.text().replace("B\t\t\n", "B\tC\t\n"), "the name 'C' is not above"),
            (
                PLAIN.text().replace("B\t\t\n", "B\t\t\tC\n"),
                "3 marker names but columns for only 2",
            ),
            (PLAIN.text().replace("\tA\t", "\tLeft knee\t").replace("\t", " "), "the name 'knee' is not above"),
        ],
    )
    def test_errors_are_one_sentence_that_names_the_file(
        self, path: Path, content: Trc | str | bytes, message: str
    ) -> None:
        with pytest.raises(MarkerFileError, match=message) as caught:
            read_markers(written(path, content))
        said = str(caught.value)
        assert said.startswith("take.trc: ")
        assert "\n" not in said
        assert isinstance(caught.value, FabrikError)

    def test_cut_in_the_only_row(self, path: Path) -> None:
        text = replace(PLAIN, rows=PLAIN.rows[:1]).text().split("\t200")[0]
        with pytest.raises(MarkerFileError, match="no complete frames"):
            read_markers(written(path, text))

    def test_a_missing_file(self, path: Path) -> None:
        with pytest.raises(MarkerFileError) as caught:
            read_markers(path)
        assert str(caught.value) == f"take.trc: there is no such file in {path.parent}: choose another"

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(MarkerFileError, match="cannot be read"):
            read_markers(tmp_path)

    def test_an_unknown_axis(self, path: Path) -> None:
        with pytest.raises(MarkerFileError, match="must be Y or Z, not 'X'"):
            read_markers(written(path, PLAIN), up_axis="X")

    def test_unknown_override_units(self, path: Path) -> None:
        with pytest.raises(MarkerFileError, match="'px' are not known"):
            read_markers(written(path, PLAIN), units="px")


@pytest.mark.skipif(os.name != "posix", reason="only there may names have any bytes")
def test_a_name_that_is_not_a_string_is_shown_as_text(tmp_path: Path) -> None:
    path = written(tmp_path / os.fsdecode(b"gr\xfc\xdfe.trc"), PLAIN)
    assert read_markers(path).source == "gr��e.trc"


@given(st.binary(max_size=300))
def test_any_bytes_after_a_header_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    path = written(tmp_path_factory.getbasetemp() / "bytes.trc", PLAIN.text().encode() + tail)
    try:
        clip = read_markers(path)
    except MarkerFileError:
        return
    assert clip.positions.shape == (clip.frame_count, len(clip.names), 3)
    assert not np.isinf(clip.positions).any()


REAL = {
    "gait2354_subject01_walk1.trc": (41, 151, 0.001, "R.ASIS", "Top.Head"),
    "gait2354_subject01_static.trc": (49, 300, 0.001, "R.ASIS", "Top.Head"),
    "Pose2Sim_markers.trc": (21, 100, 1.0, "RHip", "LWrist"),
}


@pytest.mark.parametrize("name", REAL)
class TestRealFiles:
    @pytest.fixture
    def real(self, name: str) -> Path:
        path = DATA / name
        if not path.is_file():
            pytest.skip(f"{path} is not there")
        return path

    def test_agrees_with_numpy_reading_the_same_numbers(self, real: Path) -> None:
        markers, frames, meters, first, last = REAL[real.name]
        clip = read_markers(real)
        columns = range(2, 2 + 3 * markers)
        plain = np.genfromtxt(real, delimiter="\t", skip_header=5, usecols=columns)
        np.testing.assert_allclose(clip.positions, plain.reshape(frames, markers, 3) * meters, rtol=1e-12)
        assert (clip.names[0], clip.names[-1]) == (first, last)
        assert clip.rate == 60.0

    def test_the_sample_is_a_person_on_a_floor(self, real: Path) -> None:
        clip = to_z_up(read_markers(real))
        heights = clip.positions[..., 2]
        assert 0.0 < heights.min() < 0.15
        assert 1.5 < heights.max() < 2.0

    @pytest.mark.parametrize("yaw", np.linspace(-math.pi, math.pi, 9))
    def test_up_is_found_whichever_way_the_file_has_it(self, real: Path, tmp_path: Path, yaw: float) -> None:
        clip = read_markers(real)
        assert clip.up_axis == "Y"
        x, y, z = np.moveaxis(clip.positions, -1, 0)
        across, along = math.cos(yaw) * x - math.sin(yaw) * z, math.sin(yaw) * x + math.cos(yaw) * z
        for up, axes in (("Y", (across, y, along)), ("Z", (across, -along, y))):
            points = np.stack(axes, axis=-1)[::5].reshape(-1, 3 * len(clip.names))
            rows = [("1", "0", *map(repr, point.tolist())) for point in points]
            content = Trc(names=clip.names, rows=rows, units="m")
            assert read_markers(written(tmp_path / "turned.trc", content)).up_axis == up
