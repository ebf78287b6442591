"""Marker sets as published and as spelled in real files: which labels are matched, and to which bones."""

import pytest
from support import humans
from support.marker_sets import SETS

from fabrik_addon.human import naming_schemes
from fabrik_addon.markers.mapping.labels import match, parts_of


@pytest.fixture(scope="module")
def person():
    """The parts and the bones at rest of the sample person."""
    rest = humans.rest_bones(humans.named(humans.human(), humans.SCHEMES["ours"]))
    return parts_of(naming_schemes.match(rest)), rest


@pytest.mark.parametrize("name", SETS)
class TestPublishedSets:
    def test_all_markers_are_matched(self, name: str, person) -> None:
        assert match(SETS[name].labels, *person).unmatched == ()

    def test_markers_are_on_their_bones(self, name: str, person) -> None:
        bones = {marker.marker: marker.bone for marker in match(SETS[name].labels, *person).markers}
        expected = dict(pair.split(":") for pair in SETS[name].bones.split())
        assert {label: bones.get(label) for label in expected} == expected

    def test_sides_are_not_mixed_up(self, name: str, person) -> None:
        """Each marker on a left bone has a counterpart on the right."""
        bones = [marker.bone for marker in match(SETS[name].labels, *person).markers]
        limbs = [bone for bone in bones if bone.endswith((".L", ".R"))]
        assert sorted(bone.replace(".L", ".R") for bone in limbs if bone.endswith(".L")) == sorted(
            bone for bone in limbs if bone.endswith(".R")
        )


class TestOtherLabels:
    @pytest.mark.parametrize("label", ["V_Mid_ASIS", "V_R.Knee_JC", "virtual_hip", "Bob:V_Mid_Hip"])
    def test_virtual_points(self, label: str, person) -> None:
        assert match([label, "LASI", "RASI", "LKNE", "RKNE"], *person).unmatched == (label,)

    def test_markers_on_things_are_not_matched(self, person) -> None:
        labels = [
            "Cart1",
            "Cart2",
            "Prop",
            "Wand3",
            "Plate_1",
            "Racket_Head",
            "Ball",
            "Club",
            "Chair_Back",
            "Table4",
            "Bar",
            "LFEO",
            "LFEA",
            "PELO",
            "Force1",
        ]
        assert match(labels, *person).markers == ()

    def test_one_marker_may_be_the_sacrum(self, person) -> None:
        assert match(["V.Sacral", "V_Sacral"], *person).markers[0].bone == "hips"

    def test_clusters_have_less_weight(self, person) -> None:
        weights = {
            marker.marker: marker.weight for marker in match(["RKNE", "RTHI1", "RTHI2", "RASI"], *person).markers
        }
        assert weights["RTHI1"] == weights["RTHI2"] < weights["RKNE"]
