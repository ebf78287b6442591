"""The JSON file of bone pairs."""

import pytest

from fabrik_addon.markers.mapping.marker_map import MapError
from fabrik_addon.retarget.pairs import Pair, check_bone_map, read_bone_map, write_bone_map

PAIRS = (Pair("hips", "Hips"), Pair("chest", "Spine2", "Spine1", 0.25))


def test_a_map_is_read_as_it_was_written(tmp_path):
    write_bone_map(tmp_path / "map.json", PAIRS)
    assert read_bone_map(tmp_path / "map.json") == PAIRS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ('{"fabrik_marker_map": 1}', "not a map of bones"),
        ('{"fabrik_bone_map": 2, "bones": {"a": "b"}}', "version 2"),
        ('{"fabrik_bone_map": 1, "bones": {}}', "no bones"),
        ('{"fabrik_bone_map": 1, "bones": {"a": 3}}', "'a'"),
        ('{"fabrik_bone_map": 1, "bones": {"a": {"source": "b", "before": "c", "share": 7}}}', "share is 7"),
        (f'{{"fabrik_bone_map": 1, "bones": {"[" * 5000 + "]" * 5000}}}', "nested too deeply"),
        (f'{{"fabrik_bone_map": {"9" * 5000}}}', "version inf"),
        (f'{{"fabrik_bone_map": 1, "bones": {{"a": {{"source": "b", "share": {"9" * 5000}}}}}}}', "share is inf"),
    ],
)
def test_invalid_values_are_reported_in_one_line(tmp_path, text, said):
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(MapError, match=said) as caught:
        read_bone_map(path)
    assert str(caught.value).startswith("map.json: ")
    assert "\n" not in str(caught.value)


def test_missing_bones_are_named():
    with pytest.raises(MapError, match=r"unknown bone 'chest'.*unknown bone of the source 'Spine1'"):
        check_bone_map(PAIRS, ["hips"], ["Hips", "Spine2"])
