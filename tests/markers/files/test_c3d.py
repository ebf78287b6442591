"""C3D files: every number format, readable errors, and files that are refused with one sentence."""

import io
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.c3d_files import BLOCK, DEC, INTEL, LABELS, MIPS, C3d, Param, real, standing, text, word

from fabrik_addon.core.errors import FabrikError
from fabrik_addon.markers.clip import MarkerFileError, to_z_up
from fabrik_addon.markers.files.any_file import read_markers

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("FABRIK_TEST_DATA", ROOT.parent / "shared" / "data"))

PLAIN = C3d()
METERS = PLAIN.points / 1000.0
FRAMES = len(METERS)
UNSEEN = np.zeros((FRAMES, len(LABELS)))
UNSEEN[2, 1] = UNSEEN[3:, 4] = -1.0
SEEN = UNSEEN >= 0.0
MANY = standing(2, 300)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "take.c3d"


def written(path: Path, content: C3d | bytes) -> Path:
    path.write_bytes(content.bytes() if isinstance(content, C3d) else content)
    return path


def by_package(points: np.ndarray, labels: Sequence[str], rate: float) -> bytes:
    """The file written by the package c3d, which is independent of our code."""
    import c3d  # noqa: PLC0415

    writer = c3d.Writer(point_rate=rate)
    writer.set_point_labels(list(labels))
    writer.set_screen_axis("+X", "+Z")
    for frame in points:
        writer.add_frames([(np.hstack((frame, np.zeros((len(frame), 2)))), np.zeros((0, 0)))])
    handle = io.BytesIO()
    writer.write(handle)
    return handle.getvalue()


class TestPlain:
    def test_everything_in_it(self, path: Path) -> None:
        clip = read_markers(written(path, replace(PLAIN, first=301)))
        assert clip.names == LABELS
        assert (clip.rate, clip.units, clip.up_axis, clip.source) == (100.0, "mm", "Z", "take.c3d")
        assert clip.notes == ()
        np.testing.assert_allclose(clip.positions, METERS, rtol=1e-6)

    def test_a_path_as_text(self, path: Path) -> None:
        assert read_markers(str(written(path, PLAIN))).names == LABELS

    @pytest.mark.filterwarnings("ignore:No analog data")
    def test_files_written_by_the_package(self, path: Path) -> None:
        clip = read_markers(written(path, by_package(PLAIN.points, LABELS, 120.0)))
        assert clip.names == LABELS
        assert clip.rate == 120.0
        np.testing.assert_allclose(clip.positions, METERS, rtol=1e-6)

    @pytest.mark.parametrize("processor", [INTEL, DEC, MIPS])
    @pytest.mark.parametrize("scale", [-0.1, 0.1, 1.0])
    @pytest.mark.parametrize("analogs", [0, 12])
    def test_all_kinds_of_numbers(self, path: Path, processor: int, scale: float, analogs: int) -> None:
        content = replace(PLAIN, processor=processor, scale=scale, analogs=analogs, residuals=UNSEEN)
        clip = read_markers(written(path, content))
        np.testing.assert_array_equal(clip.seen, SEEN)
        np.testing.assert_allclose(clip.positions[SEEN], METERS[SEEN], rtol=1e-6)
        assert clip.notes == ()

    @pytest.mark.parametrize(
        ("units", "meters"),
        [
            ("mm", 0.001),
            ("cm", 0.01),
            ("m", 1.0),
            ("in", 0.0254),
            ("MM", 0.001),
            ("Meters", 1.0),
            ("millimetres", 0.001),
        ],
    )
    def test_units(self, path: Path, units: str, meters: float) -> None:
        told = read_markers(written(path, replace(PLAIN, params={"POINT:UNITS": text(units)})))
        overridden = read_markers(written(path, replace(PLAIN, params={"POINT:UNITS": text("cubits")})), units=units)
        for clip in (told, overridden):
            np.testing.assert_allclose(clip.positions, PLAIN.points * meters, rtol=1e-6)


coordinates = st.integers(-32000, 32000).filter(lambda value: value != 0)


@given(
    numbers=arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 7), st.just(3)), elements=coordinates),
    hidden=st.sets(st.tuples(st.integers(0, 8), st.integers(0, 6))),
    processor=st.sampled_from([INTEL, DEC, MIPS]),
    scale=st.sampled_from([-1.0, -0.05, 1.0]),
    analogs=st.integers(0, 9),
    first=st.integers(1, 60000),
)
def test_written_files_are_read(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: np.ndarray,
    hidden: set[tuple[int, int]],
    processor: int,
    scale: float,
    analogs: int,
    first: int,
) -> None:
    residuals = np.zeros(numbers.shape[:2])
    for frame, point in hidden:
        if (frame, point) != (0, 0) and frame < len(numbers) and point < numbers.shape[1]:
            residuals[frame, point] = -1.0
    labels = [f"M{place}x" for place in range(numbers.shape[1])]
    content = C3d(numbers, residuals, labels, 50.0, scale, processor, analogs, first)
    clip = read_markers(written(tmp_path_factory.getbasetemp() / "drawn.c3d", content))
    assert clip.names == tuple(labels)
    np.testing.assert_array_equal(clip.seen, residuals >= 0.0)
    np.testing.assert_allclose(clip.positions[clip.seen], numbers[clip.seen] / 1000.0, rtol=1e-6)


# Errors in files whose points are still correct, and the notes on these errors.
ODD: dict[str, tuple[C3d, str]] = {
    "no events where many are told": (replace(PLAIN, header={"events": 400}), ""),
    "frames: the parameter says too many": (replace(PLAIN, params={"POINT:FRAMES": word(500)}), "frame count is 500"),
    "frames: the header says too many": (replace(PLAIN, header={"last": 400}), "frame count is 400"),
    "frames: the parameter says too few": (replace(PLAIN, params={"POINT:FRAMES": word(3)}), "frame count is 3"),
    "frames: nobody says": (
        C3d(standing(64, 8), labels=list("abcdefgh"), header={"last": 0}, params={"POINT:FRAMES": None}), ""
    ),
    "frames: a float": (replace(PLAIN, params={"POINT:FRAMES": real(float(FRAMES))}), ""),
    "frames: in the trial's fields": (
        replace(
            PLAIN,
            header={"first": 0, "last": 0},
            params={
                "POINT:FRAMES": None,
                "TRIAL:ACTUAL_START_FIELD": word(1, 0),
                "TRIAL:ACTUAL_END_FIELD": word(FRAMES, 0),
            },
        ),
        "",
    ),
    "points: the header says another count": (replace(PLAIN, header={"points": 50}), ""),
    "points: the parameter says another count": (replace(PLAIN, params={"POINT:USED": word(2)}), ""),
    "points: only the header counts them": (replace(PLAIN, params={"POINT:USED": None}), ""),
    "analog: the header says none": (C3d(standing(60), analogs=10, header={"analogs": 0}), ""),
    "analog: the parameters say none": (replace(PLAIN, analogs=10, params={"ANALOG:USED": word(0)}), ""),
    "analog: a rate of nonsense": (replace(PLAIN, analogs=10, params={"ANALOG:RATE": real(-7.5)}), ""),
    "analog: no such group": (replace(PLAIN, params={"ANALOG:USED": None, "ANALOG:RATE": None}), ""),
    "scale: the header says another one": (replace(PLAIN, header={"scale": -1.0}), ""),
    "scale: only the header has one": (replace(PLAIN, scale=1.0, params={"POINT:SCALE": None}), ""),
    "scale: floats, and 0": (replace(PLAIN, header={"scale": 0.0}, params={"POINT:SCALE": real(0.0)}), ""),
    "scale: floats, and the parameter says whole numbers": (replace(PLAIN, params={"POINT:SCALE": real(0.1)}), ""),
    "scale: whole numbers, and the parameter's is wrong": (
        replace(PLAIN, scale=1.0, params={"POINT:SCALE": real(0.01)}),
        "POINT:SCALE is 0.01, but the header has 1; used 1",
    ),
    "scale: whole numbers, and the header's is wrong": (
        replace(PLAIN, scale=1.0, header={"scale": 40.0}), "POINT:SCALE is 1, but the header has 40; used 1"
    ),
    "rate: only the header has one": (replace(PLAIN, params={"POINT:RATE": None}), ""),
    "rate: only the parameter has one": (replace(PLAIN, header={"rate": 0.0}), ""),
    "rate: the header says another one": (replace(PLAIN, header={"rate": 30.0}), "two frame rates, 100 and 30 Hz"),
    "start: only the header knows": (replace(PLAIN, params={"POINT:DATA_START": word(0)}), ""),
    "start: only the parameter knows": (replace(PLAIN, header={"start": 0}), ""),
    "start: the header is wrong": (replace(PLAIN, header={"start": 9}), ""),
    "start: nobody knows": (replace(PLAIN, header={"start": 0}, params={"POINT:DATA_START": None}), ""),
    "parameters: one is there twice": (replace(PLAIN, again=[("POINT:UNITS", text("m"))]), ""),
    "parameters: more blocks than there are": (replace(PLAIN, blocks=200), ""),
    "parameters: a group of nothing": (replace(PLAIN, params={"FORCE_PLATFORM:CORNERS": Param(4, [3, 4, 0], b"")}), ""),
    "parameters: one that claims more than it holds": (
        replace(PLAIN, params={"SEG:MARKER_DIAMETER": Param(4, [255, 255, 255], b"\1\2\3\4")}), ""
    ),
    "units: none": (replace(PLAIN, params={"POINT:UNITS": None}), "no units; assumed mm"),
    "units: blank": (replace(PLAIN, params={"POINT:UNITS": text("    ")}), "no units; assumed mm"),
    "units: with zeros behind": (replace(PLAIN, params={"POINT:UNITS": text("mm\0\0")}), ""),
    "labels: zeros and junk behind": (
        replace(PLAIN, params={"POINT:LABELS": text(*(f"{label}\0xyz" for label in LABELS))}), ""
    ),
    "labels: more than points": (replace(PLAIN, labels=[*LABELS, "GONE", "AWAY"]), ""),
    "more after the data": (replace(PLAIN, tail=bytes(5 * BLOCK)), ""),
    "not a multiple of a block": (replace(PLAIN, cut=40), ""),
    "kind of numbers: not told": (replace(PLAIN, processor=INTEL), ""),
    "residuals: all negative": (replace(PLAIN, residuals=np.full((FRAMES, len(LABELS)), -1.0)), "sample as missing"),
}  # fmt: skip


class TestOdd:
    @pytest.mark.parametrize("name", ODD)
    def test_odd_headers_are_read(self, path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
        content, said = ODD[name]
        with caplog.at_level(logging.INFO):
            clip = read_markers(written(path, content))
        np.testing.assert_allclose(clip.positions, content.points / 1000.0, rtol=1e-6)
        assert clip.names == tuple(content.labels[: content.points.shape[1]])
        assert clip.rate == 100.0
        notes = (*clip.notes, *clip.doubts)
        assert said in " ".join(notes)
        assert bool(said) == bool(notes)
        assert [record.getMessage() for record in caplog.records] == [f"take.c3d: {note}" for note in notes]

    @pytest.mark.parametrize("processor", [INTEL, DEC, MIPS])
    def test_an_unknown_kind_of_numbers(self, path: Path, processor: int) -> None:
        content = bytearray(replace(PLAIN, processor=processor).bytes())
        content[BLOCK + 3] = 1
        np.testing.assert_allclose(read_markers(written(path, bytes(content))).positions, METERS, rtol=1e-6)

    def test_a_file_that_ends_early(self, path: Path) -> None:
        whole = C3d(standing(40, 6))
        frame = 6 * 16
        clip = read_markers(written(path, replace(whole, cut=BLOCK + 5 * frame)))
        assert 30 <= clip.frame_count < 40
        np.testing.assert_allclose(clip.positions, whole.points[: clip.frame_count] / 1000.0, rtol=1e-6)
        assert clip.notes == ()
        assert f"The header gives 40 frames, but there are only {clip.frame_count}" in clip.doubts[0]

    def test_more_frames_than_the_header_can_count(self, path: Path) -> None:
        points = np.tile(standing(100, 1), (700, 1, 1))
        params = {"POINT:LONG_FRAMES": real(70000.0)}
        clip = read_markers(written(path, C3d(points, labels=["LASI"], scale=1.0, params=params)))
        assert clip.frame_count == 70000
        np.testing.assert_allclose(clip.positions[[0, -1]], points[[0, -1]] / 1000.0)

    def test_many_frames_counted_in_two_words(self, path: Path) -> None:
        points = np.tile(standing(100, 1), (700, 1, 1))
        params = {"TRIAL:ACTUAL_START_FIELD": word(1, 0), "TRIAL:ACTUAL_END_FIELD": word(70000 - 65536, 1)}
        assert read_markers(written(path, C3d(points, labels=["LASI"], scale=1.0, params=params))).frame_count == 70000

    def test_counts_of_two_bytes_that_overflowed(self, path: Path) -> None:
        points = np.tile(standing(100, 1), (700, 1, 1))
        params = {"POINT:FRAMES": word(70000 - 65536)}
        content = C3d(points, labels=["LASI"], scale=1.0, params=params, header={"last": 70000 - 65536})
        assert read_markers(written(path, content)).frame_count == 70000

    def test_many_frames_without_a_count(self, path: Path) -> None:
        """The count follows from the end of the file; padding in the last block is not seen."""
        points = np.tile(standing(100, 1), (700, 1, 1))
        clip = read_markers(written(path, C3d(points, labels=["LASI"], scale=1.0)))
        assert 70000 <= clip.frame_count < 70000 + BLOCK // 8
        np.testing.assert_array_equal(clip.seen[:, 0], np.arange(clip.frame_count) < 70000)

    def test_a_truncated_file_without_the_position_of_its_points(self, path: Path) -> None:
        whole = C3d(standing(40, 6), header={"start": 0})
        clip = read_markers(written(path, replace(whole, cut=3 * BLOCK)))
        np.testing.assert_allclose(clip.positions, whole.points[: clip.frame_count] / 1000.0, rtol=1e-6)

    def test_the_parameters_cut_off(self, path: Path) -> None:
        """The header gives the positions of the points; their names are lost."""
        content = bytearray(PLAIN.bytes())
        content[BLOCK + 4 : BLOCK + 6] = bytes(2)
        clip = read_markers(written(path, bytes(content)))
        np.testing.assert_allclose(clip.positions, METERS, rtol=1e-6)
        assert clip.names == tuple(f"*{place}" for place in range(1, len(LABELS) + 1))


class TestLabels:
    def named(self, path: Path, labels: Sequence[str], **params: Param) -> tuple[str, ...]:
        told = {f"POINT:{key}": param for key, param in params.items()}
        points = standing(2, len(labels))
        return read_markers(written(path, C3d(points, labels=labels, params=told))).names

    def test_odd_labels_are_kept(self, path: Path) -> None:
        names = ("Subject:LASI", "L.ASIS", "*12", "*Unnamed_3", "Fuß")
        assert self.named(path, names) == names

    def test_duplicates_are_numbered(self, path: Path) -> None:
        assert self.named(path, ["LTHI", "LTHI", "LTHI"]) == ("LTHI", "LTHI_2", "LTHI_3")

    def test_duplicates_get_their_descriptions(self, path: Path) -> None:
        told = text("l.thigh.upper", "l.thigh.front", "right knee")
        names = self.named(path, ["LTHI", "LTHI", "RKNE"], DESCRIPTIONS=told)
        assert names == ("l.thigh.upper", "l.thigh.front", "RKNE")

    def test_equal_descriptions_are_not_used(self, path: Path) -> None:
        names = self.named(path, ["LTHI", "LTHI"], DESCRIPTIONS=text("thigh", "thigh"))
        assert names == ("LTHI", "LTHI_2")

    def test_blank_and_missing_labels_get_names(self, path: Path) -> None:
        points = standing(2, 4)
        clip = read_markers(written(path, C3d(points, labels=["LASI", "    ", "RASI"])))
        assert clip.names == ("LASI", "*2", "RASI", "*4")

    def test_no_labels_at_all(self, path: Path) -> None:
        clip = read_markers(written(path, replace(PLAIN, params={"POINT:LABELS": None})))
        assert clip.names == tuple(f"*{place}" for place in range(1, len(LABELS) + 1))

    def test_more_than_255_labels_are_read(self, path: Path) -> None:
        names = [f"P{place:03}" for place in range(300)]
        content = C3d(MANY, labels=names, params={"POINT:LABELS2": text(*names[255:])})
        clip = read_markers(written(path, content))
        assert clip.names == tuple(names)
        np.testing.assert_allclose(clip.positions, MANY / 1000.0, rtol=1e-6)

    def test_prefixes_without_a_colon(self, path: Path) -> None:
        params = {"SUBJECTS:LABEL_PREFIXES": text("Ann_", "Bob_")}
        labels = ["Ann_LASI", "Ann_RASI", "Bob_LASI", "Bob_RASI"]
        clip = read_markers(written(path, C3d(standing(2, 4), labels=labels, params=params)))
        assert clip.names == ("Ann:LASI", "Ann:RASI", "Bob:LASI", "Bob:RASI")


class TestOutputs:
    def test_outputs_that_the_file_lists(self, path: Path) -> None:
        labels = ["LASI", "LHipTurn", "RASI", "Thrust", "Wobble"]
        params = {
            "POINT:ANGLES": text("LHipTurn"),
            "POINT:FORCES": text("Thrust"),
            "POINT:WOBBLES": text("Wobble"),
            "POINT:TYPE_GROUPS": Param(-1, [7, 2, 1], b"WOBBLESWOBBLE "),
        }
        clip = read_markers(written(path, C3d(standing(2, 5), labels=labels, params=params)))
        assert clip.names == ("LASI", "RASI")
        np.testing.assert_allclose(clip.positions, standing(2, 5)[:, [0, 2]] / 1000.0, rtol=1e-6)
        assert clip.notes == ("left out the outputs of a model: LHipTurn, Thrust, Wobble",)

    @pytest.mark.parametrize(
        "output",
        ["LHipAngles", "Ann:RKneeAnglesV", "RAnklePower", "LKneeMoment", "RNormalisedGRF", "CenterOfMassFloor"],
    )
    def test_outputs_known_by_their_names(self, path: Path, output: str) -> None:
        labels = ["LASI", output, "Force"]
        assert read_markers(written(path, C3d(standing(2, 3), labels=labels))).names == ("LASI", "Force")

    def test_many_ignored_outputs_are_counted(self, path: Path) -> None:
        labels = ["LASI", *(f"L{part}Angles" for part in ("Hip", "Knee", "Ankle", "Wrist", "Neck"))]
        (note,) = read_markers(written(path, C3d(standing(2, 6), labels=labels))).notes
        named = "LHipAngles, LKneeAngles, LAnkleAngles, LWristAngles, and 1 more"
        assert note == f"left out the outputs of a model: {named}"

    def test_axes_of_segments_are_four(self, path: Path) -> None:
        labels = ["LFEO", "LFEA", "LFEL", "LFEP", "LTOA", "PELO", "LASI"]
        assert read_markers(written(path, C3d(standing(2, 7), labels=labels))).names == ("LTOA", "PELO", "LASI")


def screens_of(across: str, up: str) -> dict[str, Param]:
    return {"POINT:X_SCREEN": text(across), "POINT:Y_SCREEN": text(up)}


class TestAxes:
    @pytest.mark.parametrize(
        ("screens", "up", "turn"),
        [
            (("+X", "+Z"), "Z", [(1, 0, 0), (0, 1, 0), (0, 0, 1)]),
            (("+Z", "+Y"), "Y", [(1, 0, 0), (0, 1, 0), (0, 0, 1)]),
            (("Y", "Z"), "Z", [(1, 0, 0), (0, 1, 0), (0, 0, 1)]),
            (("+Y", "-Z"), "Z", [(1, 0, 0), (0, -1, 0), (0, 0, -1)]),
            (("+Z", "-Y"), "Y", [(1, 0, 0), (0, -1, 0), (0, 0, -1)]),
            (("+Y", "+X"), "Z", [(0, 1, 0), (0, 0, 1), (1, 0, 0)]),
            (("+Y", "-X"), "Z", [(0, 0, 1), (0, 1, 0), (-1, 0, 0)]),
        ],
    )
    def test_the_up_axis_of_screens_is_used(
        self, path: Path, screens: tuple[str, str], up: str, turn: list[tuple[int, int, int]]
    ) -> None:
        """The person stands along the axis that the header gives as up."""
        upright = PLAIN.points if up == "Z" else PLAIN.points[..., [0, 2, 1]] * (1, 1, -1)
        params = screens_of(*screens)
        clip = read_markers(written(path, replace(PLAIN, points=upright @ np.array(turn), params=params)))
        assert clip.up_axis == up
        assert np.linalg.det(turn) == pytest.approx(1.0)
        np.testing.assert_allclose(clip.positions, upright / 1000.0, rtol=1e-6)
        assert not [note for note in clip.notes if "the markers" in note]
        np.testing.assert_allclose(to_z_up(clip).positions[..., 2], METERS[..., 2], rtol=1e-6)

    @pytest.mark.parametrize("across", ["+X", "+Y", "-X"])
    @pytest.mark.parametrize("up", ["+X", "-X", "+Y", "-Y", "-Z"])
    def test_a_standing_person_overrides_the_header(self, path: Path, across: str, up: str) -> None:
        """Points of a person who stands along Z, with feet on the floor and the head at 1.46 m, are not rotated."""
        clip = read_markers(written(path, replace(PLAIN, params=screens_of(across, up))))
        assert clip.up_axis == "Z"
        np.testing.assert_allclose(clip.positions, METERS, rtol=1e-6)
        named = f"he file's up axis is {up.removeprefix('+')}, but the markers show Z"
        # Writers without a setting for axes write +X and +Y, so only other axes are doubted.
        assert [named in doubt for doubt in clip.doubts] == [True] * ((across, up) != ("+X", "+Y"))
        assert [named in note for note in clip.notes] == [True] * ((across, up) == ("+X", "+Y"))

    @pytest.mark.parametrize("up", ["-Y", "-Z"])
    def test_someone_who_walks_far_overrides_the_header(self, path: Path, up: str) -> None:
        """The lowest marker also keeps its height if the file is read upside down."""
        walked = PLAIN.points + np.linspace(2600.0, -2600.0, PLAIN.frames)[:, None, None] * np.array([0.0, 1.0, 0.0])
        clip = read_markers(written(path, replace(PLAIN, points=walked, params=screens_of("+Y", up))))
        assert clip.up_axis == "Z"
        np.testing.assert_allclose(clip.positions, walked / 1000.0, rtol=1e-6)

    @pytest.mark.parametrize("up", ["+X", "-X", "+Y", "-Y", "+Z", "-Z"])
    def test_unclear_markers_leave_the_up_axis_to_the_header(self, path: Path, up: str) -> None:
        """Two markers do not show the up axis."""
        few = replace(PLAIN, points=PLAIN.points[:, :2], labels=LABELS[:2], params=screens_of("+X", up))
        clip = read_markers(written(path, few))
        pointed, sign = "XYZ".index(up[-1]), -1.0 if up[0] == "-" else 1.0
        np.testing.assert_allclose(to_z_up(clip).positions[..., 2], sign * METERS[:, :2, pointed], rtol=1e-6)

    @pytest.mark.parametrize("missing", [None, text("  "), text("??")])
    def test_without_screens_the_markers_decide(self, path: Path, missing: Param | None) -> None:
        params = {"POINT:X_SCREEN": missing, "POINT:Y_SCREEN": missing}
        assert read_markers(written(path, replace(PLAIN, params=params))).up_axis == "Z"
        lying = replace(PLAIN, points=PLAIN.points[..., [0, 2, 1]] * [1, 1, -1], params=params)
        assert read_markers(written(path, lying)).up_axis == "Y"

    def test_default_axes_of_writers_are_ignored(self, path: Path) -> None:
        clip = read_markers(written(path, replace(PLAIN, params=screens_of("+X", "+Y"))))
        assert clip.up_axis == "Z"
        assert "the file's up axis is Y" in clip.notes[0]

    def test_a_given_up_axis_is_used(self, path: Path) -> None:
        assert read_markers(written(path, PLAIN), up_axis="y").up_axis == "Y"


class TestMissing:
    def test_the_exact_origin_and_values_that_are_not_numbers(self, path: Path) -> None:
        points = PLAIN.points.copy()
        points[1, 0] = 0.0
        points[2, 1, 2] = np.nan
        points[3, 2, 0] = np.inf
        clip = read_markers(written(path, replace(PLAIN, points=points)))
        expected = np.ones((FRAMES, len(LABELS)), dtype=bool)
        expected[1, 0] = expected[2, 1] = expected[3, 2] = False
        np.testing.assert_array_equal(clip.seen, expected)

    def test_a_marker_that_is_never_seen_stays(self, path: Path) -> None:
        residuals = np.zeros((FRAMES, len(LABELS)))
        residuals[:, 2] = -1.0
        clip = read_markers(written(path, replace(PLAIN, residuals=residuals)))
        assert clip.names == LABELS
        assert not clip.seen[:, 2].any()


class TestRefused:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "the file is empty"),
            (b"   \n", "the file is empty"),
            (b"P", "not a C3D file"),
            (b"Frame#\tTime\n", "not a C3D file"),
            (replace(PLAIN, header={"magic": 0}), "not a C3D file"),
            (PLAIN.bytes()[:100], "header is truncated"),
            (PLAIN.bytes()[:BLOCK], "there are no frames"),
            (PLAIN.bytes()[: 2 * BLOCK], "there are no frames"),
            (replace(PLAIN, points=standing(0)), "there are no frames"),
            (replace(PLAIN, points=np.zeros((3, 0, 3)), labels=[], analogs=4), "choose a file with markers"),
            (replace(PLAIN, points=np.zeros((3, 6, 3))), "no marker is visible"),
            (replace(PLAIN, points=np.full((3, 6, 3), np.nan)), "no marker is visible"),
            (replace(PLAIN, params={"POINT:UNITS": text("furlongs")}), "the units 'furlongs' are not known"),
            (replace(PLAIN, header={"rate": 0.0}, params={"POINT:RATE": real(0.0)}), "frame rate is unknown: choose"),
            (replace(PLAIN, header={"rate": -5.0}, params={"POINT:RATE": None}), "frame rate is unknown: choose"),
            (replace(PLAIN, header={"rate": np.nan}, params={"POINT:RATE": real(np.inf)}), "the frame rate is unknown"),
            (replace(PLAIN, scale=1.0, header={"scale": 0.0}, params={"POINT:SCALE": real(0.0)}), "SCALE is missing"),
            (replace(PLAIN, labels=[f"L{part}Angles" for part in "abcdef"]), "all 6 points are outputs of a model"),
        ],
    )  # fmt: skip
    def test_errors_are_one_sentence_that_names_the_file(self, path: Path, content: C3d | bytes, message: str) -> None:
        with pytest.raises(MarkerFileError, match=message) as caught:
            read_markers(written(path, content))
        said = str(caught.value)
        assert said.startswith("take.c3d: ")
        assert "\n" not in said
        assert isinstance(caught.value, FabrikError)

    def test_a_missing_file(self, path: Path) -> None:
        with pytest.raises(MarkerFileError, match=r"^take\.c3d: there is no such file"):
            read_markers(path)

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(MarkerFileError, match="cannot be read"):
            read_markers(tmp_path)

    def test_an_unknown_axis(self, path: Path) -> None:
        with pytest.raises(MarkerFileError, match="must be Y or Z, not 'X'"):
            read_markers(written(path, PLAIN), up_axis="X")


@given(
    changes=st.lists(st.tuples(st.integers(0, 3 * BLOCK - 1), st.integers(0, 255)), max_size=12),
    cut=st.integers(0, 2200),
)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], cut: int
) -> None:
    content = bytearray(PLAIN.bytes())
    for place, value in changes:
        content[place] = value
    path = written(tmp_path_factory.getbasetemp() / "bytes.c3d", bytes(content[: max(len(content) - cut, 0)]))
    try:
        clip = read_markers(path)
    except MarkerFileError:
        return
    assert clip.positions.shape == (clip.frame_count, len(clip.names), 3)
    assert len(set(clip.names)) == len(clip.names)


class TestRealFiles:
    @pytest.fixture
    def real(self, request: pytest.FixtureRequest) -> Path:
        path = DATA / request.param
        if not path.is_file():
            pytest.skip(f"{path} is not there")
        return path

    @pytest.mark.parametrize("real", ["PiG_Motion3_FF.c3d"], indirect=True)
    def test_plug_in_gait(self, real: Path) -> None:
        clip = read_markers(real)
        assert (clip.frame_count, clip.rate, clip.up_axis) == (293, 100.0, "Z")
        legs = [f"{side}{name}" for side in "LR" for name in ("ASI", "PSI", "THI", "KNE", "TIB", "ANK", "HEE", "TOE")]
        assert set(legs) <= set(clip.names)
        assert all(name.startswith("*") for name in set(clip.names) - set(legs))
        heights = np.nanmedian(
            clip.positions[:, [clip.names.index(name) for name in ("LTOE", "LKNE", "LASI")], 2], axis=0
        )
        np.testing.assert_allclose(heights, [0.06, 0.48, 0.96], atol=0.06)

    @pytest.mark.parametrize("real", ["MACsample.c3d"], indirect=True)
    def test_motion_analysis(self, real: Path) -> None:
        clip = read_markers(real)
        assert (clip.frame_count, len(clip.names), clip.rate, clip.up_axis) == (180, 33, 60.0, "Z")
        assert {"RSHO", "r.thigh.upper", "l.ankle.medial"} <= set(clip.names)
        shoulder = clip.positions[:, clip.names.index("RSHO"), 2]
        assert 1.4 < np.nanmedian(shoulder) < 1.55

    @pytest.mark.parametrize("real", ["golfswing.c3d"], indirect=True)
    def test_a_file_with_analog_channels_is_read(self, real: Path) -> None:
        clip = read_markers(real)
        assert (clip.frame_count, len(clip.names), clip.up_axis) == (514, 29, "Z")
        assert clip.rate == pytest.approx(107.5269)
        assert clip.seen.all()

    @pytest.mark.parametrize("real", ["Analysis.c3d"], indirect=True)
    def test_nothing_but_outputs(self, real: Path) -> None:
        with pytest.raises(MarkerFileError, match="all 24 points are outputs of a model, such as 'LPelvisAngles'"):
            read_markers(real)

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("real", ["PiG_Motion3_FF.c3d", "golfswing.c3d"], indirect=True)
    def test_agrees_with_the_package(self, real: Path) -> None:
        import c3d  # noqa: PLC0415

        clip = read_markers(real)
        with real.open("rb") as handle:
            reader = c3d.Reader(handle)
            names = [label.strip() for label in reader.point_labels]
            frames = np.stack([points for _number, points, _analog in reader.read_frames()])
        frames = frames[:, [names.index(name) for name in clip.names]]
        np.testing.assert_array_equal(clip.seen, frames[..., 3] >= 0.0)
        np.testing.assert_allclose(clip.positions[clip.seen], frames[clip.seen][:, :3] / 1000.0, rtol=1e-6)
