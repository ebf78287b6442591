"""The report: figures compared with a plain loop, the CSV read back, and the table."""

import csv
import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fabrik_addon.core import Status
from fabrik_addon.markers.report import COLUMNS, Report, csv_text, rotations_line, table_text
from fabrik_addon.markers.whole_files import WriteError, write_text

distances = st.one_of(st.just(math.nan), st.floats(0.0, 10.0))
tables = arrays(np.float64, st.tuples(st.integers(0, 6), st.integers(0, 5)), elements=distances)


def report_of(errors: np.ndarray, **others: object) -> Report:
    """A report with made-up names, on every second frame from 10."""
    frames, markers = errors.shape
    parts: dict[str, object] = {
        "markers": [f"M{i}" for i in range(markers)],
        "frames": range(10, 10 + 2 * frames, 2),
        "status": [Status.FITTED] * frames,
    }
    return Report(errors, **{**parts, **others})  # type: ignore[arg-type]


def plain_figures(values: list[float]) -> tuple[float, float, float, float]:
    """Mean, RMS, maximum and coverage of a list by a plain loop."""
    seen = [value for value in values if not math.isnan(value)]
    if not seen:
        return math.nan, math.nan, math.nan, 0.0
    mean = sum(seen) / len(seen)
    rms = math.sqrt(sum(value * value for value in seen) / len(seen))
    return mean, rms, max(seen), 100.0 * len(seen) / len(values)


def same(found: tuple[float, ...], expected: tuple[float, ...]) -> None:
    """Equal figures, NaN for NaN."""
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-150)


class TestFigures:
    @given(tables)
    def test_rows_agree_with_a_plain_loop(self, errors: np.ndarray) -> None:
        report = report_of(errors)
        for i, row in enumerate(report.per_marker()):
            same((row.mean, row.rms, row.max, row.coverage), plain_figures(errors[:, i].tolist()))
            if row.worst_frame is not None:
                assert errors[list(report.frames).index(row.worst_frame), i] == row.max
        for i, at in enumerate(report.per_frame()):
            same((at.mean, at.rms, at.max, at.coverage), plain_figures(errors[i].tolist()))
            if at.worst_marker is not None:
                assert errors[i, list(report.markers).index(at.worst_marker)] == at.max
        total = report.total
        figures = plain_figures(errors.ravel().tolist())
        same((total.mean, total.rms, total.max, total.coverage), figures)
        assert (total.worst_frame is None) == (total.worst_marker is None) == math.isnan(total.max)

    def test_an_unseen_marker_does_not_count_as_an_error_of_zero(self) -> None:
        row = report_of(np.array([[0.1, math.nan], [0.3, math.nan]])).per_marker()[1]
        assert math.isnan(row.rms)
        assert row.coverage == 0.0
        assert row.worst_frame is None

    def test_rejected_samples_are_seen_but_not_in_any_figure(self) -> None:
        errors = np.array([[0.1, 0.5], [0.3, 0.7]])
        report = report_of(errors, outliers=np.array([[True, True], [False, True]]))
        total, (first, second) = report.total, report.per_marker()
        assert (total.rms, total.max) == pytest.approx((0.3, 0.3))
        assert (total.worst_marker, total.worst_frame, total.coverage) == ("M0", 12, 100.0)
        assert (first.rms, first.worst_frame) == (pytest.approx(0.3), 12)
        assert math.isnan(second.rms)
        assert (second.worst_frame, second.coverage) == (None, 100.0)

    def test_status_by_name(self) -> None:
        report = report_of(np.ones((3, 1)), status=[Status.SOLVED, Status.UNSEEN, Status.SOLVED])
        assert report.status_counts() == {"SOLVED": 2, "UNSEEN": 1}
        assert [at.status for at in report.per_frame()] == ["SOLVED", "UNSEEN", "SOLVED"]

    def test_long_gaps_are_in_frame_numbers_longest_first(self) -> None:
        errors = np.ones((40, 2))
        errors[1:11, 0] = errors[20:35, 0] = errors[3:12, 1] = errors[20:32, 1] = math.nan
        last = table_text(report_of(errors)).splitlines()[-1]
        assert last == "40 frames: FITTED 40. Long unseen: M0 50 to 78, M1 50 to 72, M0 12 to 30."


class TestCsv:
    def read(self, path: Path) -> list[dict[str, str]]:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    @given(tables)
    def test_every_figure_is_there(self, tmp_path_factory: pytest.TempPathFactory, errors: np.ndarray) -> None:
        path = tmp_path_factory.getbasetemp() / "report.csv"
        report = report_of(errors)
        write_text(path, csv_text(report))
        rows = self.read(path)
        frames, markers = errors.shape
        assert [row["scope"] for row in rows] == (["marker"] * markers + ["frame"] * frames + ["total"])
        expected = [*report.per_marker(), *report.per_frame(), report.total]
        for row, figures in zip(rows, expected, strict=False):
            found = (float(row[column] or "nan") for column in ("mean_m", "rms_m", "max_m"))
            np.testing.assert_allclose(tuple(found), (figures.mean, figures.rms, figures.max), rtol=1e-5)
            assert float(row["coverage"]) == pytest.approx(figures.coverage, abs=0.01)
        assert set(rows[0]) == set(COLUMNS)

    def test_names_that_csv_must_quote(self, tmp_path: Path) -> None:
        names = ['a,"b"', "Fuß\n2"]
        write_text(tmp_path / "r.csv", csv_text(report_of(np.array([[0.1, 0.2]]), markers=names)))
        rows = self.read(tmp_path / "r.csv")
        assert [row["name"] for row in rows] == [*names, "", "all"]
        assert rows[2]["worst"] == names[1]
        assert (rows[2]["frame"], rows[2]["status"]) == ("10", "FITTED")
        assert (rows[3]["frame"], rows[3]["status"]) == ("10", "FITTED 1")

    @pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "=a\r=b"])
    def test_spreadsheets_run_no_name_as_a_formula(self, tmp_path: Path, name: str) -> None:
        report = report_of(np.array([[0.1, 0.2]]), markers=["A", name])
        write_text(tmp_path / "r.csv", csv_text(replace(report, doubts=(name,))))
        cells = [row[column] for row in self.read(tmp_path / "r.csv") for column in ("name", "worst")]
        assert cells.count(f"'{name}".replace("\r", " ")) == 4
        assert not [cell for cell in cells if cell.startswith(tuple("=+-@\t\r"))]

    def test_an_old_report_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "r.csv"
        path.write_text("old\n" * 1000)
        write_text(path, csv_text(report_of(np.ones((1, 1)))))
        assert len(self.read(path)) == 3
        assert [file.name for file in tmp_path.iterdir()] == ["r.csv"]

    def test_a_failed_write_leaves_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "r.csv").mkdir()
        (tmp_path / "r.csv" / "inside").touch()
        for path in (tmp_path / "r.csv", tmp_path / "none" / "r.csv"):
            with pytest.raises(WriteError, match=r"^r\.csv: cannot be written"):
                write_text(path, csv_text(report_of(np.ones((1, 1)))))
        assert [file.name for file in tmp_path.iterdir()] == ["r.csv"]
        assert (tmp_path / "r.csv" / "inside").exists()


class TestTable:
    def test_a_table_with_known_text(self) -> None:
        errors = np.full((12, 3), 0.003)
        errors[0, 0] = 0.0123
        errors[1:, 1] = math.nan
        errors[:, 2] = math.nan
        report = report_of(errors, markers=["LASI", "Head.Top", "X"])
        assert table_text(report).splitlines() == [
            "marker    mean mm  rms mm  max mm  worst frame  seen %",
            "LASI          3.8     4.6    12.3           10   100.0",
            "Head.Top      3.0     3.0     3.0           10     8.3",
            "X               -       -       -            -     0.0",
            "all           3.7     4.5    12.3           10    36.1",
            "12 frames: FITTED 12. Long unseen: X 10 to 32, Head.Top 12 to 32.",
        ]

    def test_the_number_of_listed_gaps_is_limited(self) -> None:
        errors = np.full((20, 9), math.nan)
        last = table_text(report_of(errors)).splitlines()[-1]
        assert last.endswith("M4 10 to 48, and 4 more.")

    def test_a_retarget_lists_bones(self) -> None:
        report = Report(np.zeros((1, 1)), ["foot"], [7], [Status.SOLVED], rotations={"foot": np.zeros(1)})
        assert table_text(report).split()[:2] == ["bone", "mean"]

    @given(tables)
    def test_columns_line_up(self, errors: np.ndarray) -> None:
        report = report_of(errors)
        lines = table_text(report).splitlines()
        assert len(lines) == 1 + errors.shape[1] + 2
        assert len({len(line) for line in lines[:-1]}) == 1


def test_rotations_are_reported_in_degrees():
    off = {"thigh": np.radians([1.0, 2.0, 3.0]), "shin": np.radians([0.0, 12.0, 4.0])}
    report = Report(np.zeros((3, 1)), ["foot"], [7, 8, 9], [Status.SOLVED] * 3, rotations=off)
    rows = [row for row in csv.DictReader(io.StringIO(csv_text(report))) if row["scope"] == "rotation"]
    found = [(row["name"], row["mean_deg"], row["max_deg"], row["worst"]) for row in rows]
    assert found == [("thigh", "2", "3", "9"), ("shin", "5.333", "12", "8")]
    assert [*rotations_line(report)] == ["Rotations: median error 2.5°, worst 12.0° (shin, frame 8)"]
