"""Markers without labels get their bones from their motion, on takes from which all labels but eight are removed."""

import numpy as np
import pytest
from support import humans
from support.recordings import ROOT, recording

from fabrik_addon.core import Skeleton
from fabrik_addon.human import naming_schemes
from fabrik_addon.markers.assign import assign_by_motion, bones_by_motion
from fabrik_addon.markers.clip import Clip, to_z_up
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.markers.mapping.labels import match, parts_of

WALK = ROOT / "sample_rigs" / "walk.trc"


def person():
    """A skeleton, its roles, and its bones at rest."""
    rest = humans.rest_bones(humans.named(humans.human(fingers=False), humans.SCHEMES["ours"]))
    matrices = np.tile(np.eye(4), (len(rest), 1, 1))
    for matrix, bone in zip(matrices, rest.values(), strict=True):
        matrix[:3, :3], matrix[:3, 3] = bone.axes, bone.head
    names = tuple(rest)
    parents = [names.index(bone.parent) if bone.parent else -1 for bone in rest.values()]
    lengths = np.array([bone.length for bone in rest.values()])
    return Skeleton(names, parents, matrices, lengths), parts_of(naming_schemes.match(rest)), rest


def unlabelled(clip: Clip, kept: set[str], order: np.random.Generator) -> tuple[Clip, dict[str, str]]:
    """The clip with its markers in another order and only the kept labels, and the names of the others."""
    places = order.permutation(len(clip.names))
    told = {f"*{place}": clip.names[place] for place in places if clip.names[place] not in kept}
    called = {label: name for name, label in told.items()}
    names = tuple(called.get(clip.names[place], clip.names[place]) for place in places)
    return Clip(names, clip.rate, clip.positions[:, places], up_axis="Z"), told


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        (WALK, "LASI RASI C7 LFHD LWRA RWRA LANK RANK"),
        (WALK, "LASI RPSI STRN RFHD LELB RWRA LHEE RTOE"),
        ("gait2354_subject01_walk1.trc", "R.ASIS L.ASIS Sternum Top.Head R.Wrist.Lat L.Wrist.Lat R.Heel L.Heel"),
        ("MACsample.c3d", "RSHO VSAC RHIP LHIP RWRI LWRI RHEE LHEE"),
    ],
)
def test_bones_are_found_for_all_but_eight_labels(path, kept) -> None:
    clip = to_z_up(read_markers(path if path == WALK else recording(path)))
    skeleton, parts, rest = person()
    truth = {marker.marker: marker.bone for marker in match(clip.names, parts, rest).markers}
    seen = {name for name, any_seen in zip(clip.names, clip.seen.any(axis=0), strict=True) if any_seen}
    anonymous, told = unlabelled(clip, set(kept.split()), np.random.default_rng(5))
    known = match(anonymous.names, parts, rest).markers
    assert len(known) == 8
    guesses = assign_by_motion(skeleton, known, anonymous, parts, rest)
    right = [guess for guess in guesses if guess.entry.bone == truth[told[guess.entry.marker]]]
    assert len(right) >= 0.9 * len(seen & set(told.values()))
    assert all(guess.entry.weight <= 0.2 for guess in guesses)
    assert all(0.0 <= guess.residual < 0.035 for guess in guesses)


class TestWhatIsLeft:
    def test_objects_in_the_room_and_flying_ones(self) -> None:
        clip = to_z_up(read_markers(WALK))
        skeleton, parts, rest = person()
        count = clip.frame_count
        flight = np.stack([np.linspace(-3.0, 3.0, count), np.zeros(count), np.full(count, 1.0)], axis=1)
        things = np.stack([np.tile([1.0, 2.0, 0.5], (count, 1)), flight], axis=1)
        positions = np.concatenate([clip.positions, things], axis=1)
        more = Clip((*clip.names, "*1", "*2"), clip.rate, positions, up_axis="Z")
        assert assign_by_motion(skeleton, match(more.names, parts, rest).markers, more, parts, rest) == ()

    def test_too_few_known(self) -> None:
        clip = to_z_up(read_markers(WALK))
        skeleton, parts, rest = person()
        known = match(["LASI", "RASI", "LKNE", "RKNE", "LANK"], parts, rest).markers
        assert assign_by_motion(skeleton, known, clip, parts, rest) == ()


def test_a_marker_is_on_the_bone_relative_to_which_it_stays() -> None:
    """Two bones that swing against each other, with a marker on each, one on neither, and one that is never seen."""
    angles = np.radians(np.linspace(-40.0, 40.0, 30))
    matrices = np.tile(np.eye(4), (30, 2, 1, 1))
    matrices[:, 1, 0, 0] = matrices[:, 1, 1, 1] = np.cos(angles)
    matrices[:, 1, 0, 1], matrices[:, 1, 1, 0] = -np.sin(angles), np.sin(angles)
    place = np.array([0.05, 0.3, 0.0])
    swinging = matrices[:, 1, :3, :3] @ place
    still = np.tile(place, (30, 1))
    wild = np.random.default_rng(1).normal(scale=0.3, size=(30, 3))
    points = np.stack([still, swinging, wild, np.full((30, 3), np.nan)], axis=1)
    found = bones_by_motion(points, matrices, [place[None] + 0.01, place[None] - 0.01], loosest=0.05)
    assert found.bones.tolist() == [0, 1, -1, -1]
    np.testing.assert_allclose(found.offsets[:2], [place, place], atol=1e-9)
    np.testing.assert_allclose(found.residuals[:2], 0.0, atol=1e-9)
