"""File formats by content, and the performers of a recording."""

import os
from pathlib import Path

import numpy as np
import pytest
from support.c3d_files import LABELS, C3d, standing

from fabrik_addon.markers.clip import Clip, ClipError, MarkerFileError
from fabrik_addon.markers.files.any_file import SUFFIXES, performers, read_markers, select_performer

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
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_a_trc_file_of_any_name(self, tmp_path: Path, name: str, encoding: str) -> None:
        (tmp_path / name).write_bytes(TRC.encode(encoding))
        assert read_markers(tmp_path / name).names == ("A",)

    @pytest.mark.parametrize("name", ["a.c3d", "a.C3D", "a.trc", "a.bin"])
    def test_a_c3d_file_of_any_name(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(C3d().bytes())
        assert read_markers(str(tmp_path / name)).names == LABELS

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
            ("a.fbx", b"Kaydara FBX", r"^a\.fbx: this is not a TRC/C3D/CSV/NPY/NPZ file: choose one of these$"),
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


class TestPerformers:
    def test_in_the_order_of_the_labels(self) -> None:
        clip = clip_of("Bob:LASI", "Anna:LASI", "Bob:RASI", "*12", "Prop")
        assert performers(clip) == ("Bob", "Anna")

    def test_none(self) -> None:
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

    def test_the_markers_of_one(self) -> None:
        clip = clip_of("Bob:LASI", "Anna:LASI", "*12", "Bob:RASI")
        bob = select_performer(clip, "Bob")
        assert bob.names == ("LASI", "RASI")
        np.testing.assert_array_equal(bob.positions, clip.positions[:, [0, 3]])
        assert (bob.rate, bob.up_axis) == (clip.rate, clip.up_axis)
        assert performers(bob) == ()

    def test_together_they_are_all_prefixed_markers(self) -> None:
        clip = clip_of("a:b:X", "a:Y", "a:b:Z", "c:X")
        assert performers(clip) == ("a:b", "a", "c")
        names = [f"{name}:{label}" for name in performers(clip) for label in select_performer(clip, name).names]
        assert sorted(names) == sorted(clip.names)

    def test_prefixes_with_underscores_before_the_same_labels(self) -> None:
        labels = ["LASI", "RASI", "LKNE", "RKNE", "LANK"]
        clip = clip_of(*(f"Anna_{label}" for label in labels), *(f"Bob_{label}" for label in labels), "Chair_1")
        assert performers(clip) == ("Anna", "Bob")
        assert select_performer(clip, "Bob").names == tuple(labels)

    def test_sides_and_parts_are_not_performers(self) -> None:
        labels = ["ASIS", "PSIS", "KNEE", "ANKLE", "HEEL", "TOE"]
        assert performers(clip_of(*(f"{side}_{label}" for side in ("Left", "Right") for label in labels))) == ()
        clusters = [f"{part}_{number}" for part in ("Thigh", "Shank") for number in range(6)]
        assert performers(clip_of(*clusters)) == ()

    def test_an_unknown_performer(self) -> None:
        with pytest.raises(ClipError, match="no performer 'Carl': choose from Anna, Bob"):
            select_performer(clip_of("Anna:X", "Bob:X"), "Carl")
        with pytest.raises(ClipError, match="no performer 'Carl': choose from labels without one"):
            select_performer(clip_of("X"), "Carl")
