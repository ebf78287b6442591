"""The marker map: written maps are read back, and errors name what is invalid."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrik_addon.markers.mapping.marker_map import MapError, MappedMarker, check_map, read_map, write_map
from fabrik_addon.markers.whole_files import WriteError

names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
reals = st.floats(-1e15, 1e15)
weights = st.one_of(st.just(1.0), st.floats(0.0, 1e6))
entries = st.one_of(
    st.builds(MappedMarker, names, names, st.sampled_from(["HEAD", "TAIL"]), st.none(), weights),
    st.builds(MappedMarker, names, names, st.just("OFFSET"), st.tuples(reals, reals, reals), weights),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "map.json"


def written(path: Path, markers: object, **others: object) -> Path:
    """The path, after writing a map of these markers."""
    content = {"fabrik_marker_map": 1, "markers": markers, **others}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@given(st.lists(entries, min_size=1, max_size=8, unique_by=lambda entry: entry.marker))
def test_written_files_are_read(tmp_path_factory: pytest.TempPathFactory, wanted: list[MappedMarker]) -> None:
    path = tmp_path_factory.getbasetemp() / "map.json"
    write_map(path, wanted)
    assert read_map(path) == tuple(wanted)


def test_every_form_of_an_entry(path: Path) -> None:
    markers = {
        "LKnee": {"bone": "thigh.L", "point": "TAIL", "weight": 1.0},
        "LFHD": {"bone": "head", "offset": [0.05, 0.1, 0.08]},
        "LHip": {"bone": "thigh.L", "point": "head", "weight": 2},
        "RFHD": {"bone": "head", "point": "OFFSET", "offset": [0, 1, 2], "weight": 0},
        "Subject:LTOE": "foot.L",
    }
    assert read_map(written(path, markers)) == (
        MappedMarker("LKnee", "thigh.L", "TAIL", None, 1.0),
        MappedMarker("LFHD", "head", "OFFSET", (0.05, 0.1, 0.08), 1.0),
        MappedMarker("LHip", "thigh.L", "HEAD", None, 2.0),
        MappedMarker("RFHD", "head", "OFFSET", (0.0, 1.0, 2.0), 0.0),
        MappedMarker("Subject:LTOE", "foot.L", "TAIL", None, 1.0),
    )


def test_the_file_is_concise_and_keeps_umlauts(path: Path) -> None:
    write_map(path, [MappedMarker("Fuß", "foot.L"), MappedMarker("B", "head", "HEAD", None, 0.5)])
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "fabrik_marker_map": 1,
        "markers": {"Fuß": "foot.L", "B": {"bone": "head", "point": "HEAD", "weight": 0.5}},
    }
    assert "Fuß" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (7, "marker 'A': it must be a bone's name or an object, not 7"),
        (["x", "y"], "it must be a bone's name"),
        ("", "both must have a name"),
        ({}, "'bone' must be a bone's name, not None"),
        ({"bone": 3}, "'bone' must be a bone's name, not 3"),
        ({"bone": "b", "wieght": 2.0}, "'wieght' must be one of"),
        ({"bone": "b", "point": "MIDDLE"}, "HEAD, TAIL or OFFSET, not 'MIDDLE'"),
        ({"bone": "b", "point": None}, "HEAD, TAIL or OFFSET, not None"),
        ({"bone": "b", "point": "OFFSET"}, "with an offset the point must be OFFSET"),
        ({"bone": "b", "point": "HEAD", "offset": [0, 0, 0]}, "with an offset the point must be OFFSET"),
        ({"bone": "b", "offset": [1, 2]}, "three finite numbers, not \\(1, 2\\)"),
        ({"bone": "b", "offset": {"x": 1}}, "three finite numbers"),
        ({"bone": "b", "offset": [1, 2, "3"]}, "three finite numbers, not \\(1, 2, '3'\\)"),
        ({"bone": "b", "offset": [1, 2, math.nan]}, "three finite numbers"),
        ({"bone": "b", "weight": True}, "weight must be a number of 0 or more, not True"),
        ({"bone": "b", "weight": -1}, "a number of 0 or more, not -1"),
        ({"bone": "b", "weight": math.inf}, "a number of 0 or more"),
        ({"bone": "b", "weight": 10**400}, "a number of 0 or more, not inf"),
        ({"bone": "b", "offset": [0, 0, 10**400]}, "three finite numbers"),
    ],
)
def test_an_invalid_entry(path: Path, entry: object, message: str) -> None:
    with pytest.raises(MapError, match=message) as caught:
        read_map(written(path, {"A": entry}))
    assert str(caught.value).startswith("map.json: marker 'A'")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"not valid JSON \(.*, line 1\)"),
        ('{"fabrik_marker_map": 1,\n "markers": {"A": }}', r"not valid JSON \(.*, line 2\)"),
        ("[1, 2]", "it is not a marker map"),
        ('{"markers": {"A": "b"}}', "it is not a marker map"),
        ('{"fabrik_marker_map": 2, "markers": {"A": "b"}}', "version 2 of the map"),
        ('{"fabrik_marker_map": 1}', "no markers"),
        ('{"fabrik_marker_map": 1, "markers": {}}', "no markers"),
        ('{"fabrik_marker_map": 1, "markers": ["A"]}', "no markers"),
        (
            '{"fabrik_marker_map": 1, "markers": {"A": "b", "A": "c"}}',
            "'A' occurs more than once",
        ),
        (f'{{"fabrik_marker_map": 1, "markers": {"[" * 5000 + "]" * 5000}}}', "nested too deeply"),
        (f'{{"fabrik_marker_map": {"9" * 5000}}}', "version inf"),
    ],
)
def test_a_file_that_is_not_a_map(path: Path, text: str, message: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MapError, match=rf"^map\.json: .*{message}"):
        read_map(path)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(MapError, match=r"none\.json: there is no such file"):
        read_map(tmp_path / "none.json")
    with pytest.raises(MapError, match="cannot be read"):
        read_map(tmp_path)
    with pytest.raises(WriteError, match=r"map\.json: cannot be written"):
        write_map(tmp_path / "no" / "map.json", [MappedMarker("A", "b")])
    (tmp_path / "latin.json").write_bytes(b'{"\xe9": 1}')
    with pytest.raises(MapError, match="not UTF-8"):
        read_map(tmp_path / "latin.json")


def test_a_byte_order_mark_is_accepted(path: Path) -> None:
    written(path, {"A": "b"})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_map(path) == (MappedMarker("A", "b"),)


class TestCheck:
    ENTRIES = (MappedMarker("LKnee", "thigh.L"), MappedMarker("LAnkle", "shin.L"))

    def test_all_known(self) -> None:
        check_map(self.ENTRIES, ["RKnee", "LAnkle", "LKnee"], {"thigh.L": 0, "shin.L": 1})

    def test_everything_unknown_is_named_in_one_sentence(self) -> None:
        with pytest.raises(MapError) as caught:
            check_map(self.ENTRIES, [], ["spine", "thigh.L"])
        unknown = "unknown markers 'LKnee', 'LAnkle'; unknown bone 'shin.L'"
        assert str(caught.value) == f"the marker map contains {unknown}: choose another map, or fix it"

    def test_a_similar_name_is_suggested(self) -> None:
        with pytest.raises(MapError, match=r"unknown marker 'LKnee' \(did you mean 'Sub:LKnee'\?\)"):
            check_map(self.ENTRIES, ["Sub:LKnee", "LAnkle"], ["thigh.L", "shin.L"])

    def test_a_marker_mapped_twice(self, path: Path) -> None:
        twice = [*self.ENTRIES, MappedMarker("LKnee", "shin.L")]
        with pytest.raises(MapError, match="'LKnee' is mapped more than once"):
            check_map(twice, ["LKnee", "LAnkle"], ["thigh.L", "shin.L"])
        with pytest.raises(MapError, match="'LKnee' is mapped more than once"):
            write_map(path, twice)
        assert not path.exists()


@pytest.mark.parametrize("levels", range(850, 1000, 5))
def test_any_depth_is_read_or_refused(path: Path, levels: int) -> None:
    """A file of any depth is read or refused, even if only the part that a message quotes is too deep."""
    path.write_text(f'{{"fabrik_marker_map": 1, "markers": {{"A": {"[" * levels + "]" * levels}}}}}', encoding="utf-8")
    with pytest.raises(MapError):
        read_map(path)


def test_a_disk_that_is_full_leaves_the_map_as_it_was(path: Path) -> None:
    """A limit on the size of files simulates the full disk."""
    resource = pytest.importorskip("resource")
    entries = [MappedMarker(f"marker {number}", "head") for number in range(100)]
    write_map(path, entries[:1])
    before, (_, most) = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), most))
    try:
        with pytest.raises(WriteError, match="cannot be written"):
            write_map(path, entries)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]
