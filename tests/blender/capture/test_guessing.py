"""Listed markers with unknown labels are assigned to the bones that they move with, as guesses."""

from dataclasses import replace
from pathlib import Path

import bpy
import pytest
from support import scenes

from fabrik_addon.blender.capture.import_markers import import_clip
from fabrik_addon.blender.capture.matching import guess_markers, match_markers
from fabrik_addon.markers.files.any_file import read_markers

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]

SAMPLES = Path(__file__).parents[3] / "sample_rigs"
KNOWN = {"LASI", "RASI", "C7", "LFHD", "LWRA", "RWRA", "LANK", "RANK"}


def open_walk(kept=KNOWN):
    """The sample person with the sample walk, with only some labels; the rig, and the labels of the others."""
    bpy.ops.wm.open_mainfile(filepath=str(SAMPLES / "human.blend"), load_ui=False)
    rig = next(thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")
    scenes.make_active(rig)
    clip = read_markers(SAMPLES / "walk.trc")
    labels = {name if name in kept else f"*{place}": name for place, name in enumerate(clip.names)}
    import_clip(bpy.context, replace(clip, names=tuple(labels)))
    return rig, {label: name for label, name in labels.items() if label != name}


def right_bones(rig):
    """The bone of each of the walk's markers, by its label."""
    take = import_clip(bpy.context, read_markers(SAMPLES / "walk.trc"))
    return {marker.marker: marker.bone for marker in match_markers(bpy.context, rig, take=take).markers}


def test_eight_labels_are_enough_to_find_the_rest():
    rig, told = open_walk()
    assert len(match_markers(bpy.context, rig).markers) == 8
    assert len(guess_markers(bpy.context, rig)) == len(told)
    found = {entry.name: (entry.bone, entry.guess, entry.weight) for entry in rig.fabrik.capture.markers}
    assert all(found[label][1] < 0.0 for label in KNOWN)
    assert all(0.0 <= found[label][1] < 0.035 and found[label][2] < 0.21 for label in told)
    truth = right_bones(rig)
    assert sum(found[label][0] == truth[name] for label, name in told.items()) >= 0.9 * len(told)


def test_assignments_by_hand_stay_and_identify_the_others():
    """As with a file without labels: match again, keeping the bones that were assigned by hand."""
    rig, told = open_walk(kept=set())
    bpy.ops.fabrik.match_markers()
    capture = rig.fabrik.capture
    assert not any(entry.bone for entry in capture.markers)
    by_hand = {"LASI": "hips", "RASI": "hips", "C7": "upper_chest", "LFHD": "head", "LANK": "shin.L", "RANK": "shin.R"}
    by_hand |= {"LWRA": "forearm.L", "RWRA": "forearm.R"}
    for label, name in told.items():
        if name in by_hand:
            capture.active_marker = capture.markers.find(label)
            rig.data.bones.active = rig.data.bones[by_hand[name]]
            bpy.ops.fabrik.marker_bone()
    bpy.ops.fabrik.match_markers(keep=True)
    entries = {told[entry.name]: entry for entry in capture.markers}
    assert {name: entries[name].bone for name in by_hand} == by_hand
    assert all(entries[name].guess < 0.0 for name in by_hand)
    guessed = {name: entry.bone for name, entry in entries.items() if entry.bone and name not in by_hand}
    truth = right_bones(rig)
    assert len(guessed) >= 0.9 * (len(told) - len(by_hand))
    assert sum(bone == truth[name] for name, bone in guessed.items()) >= 0.75 * len(guessed)


def test_a_few_markers_give_no_guesses():
    rig, _told = open_walk(kept={"LASI", "RASI", "LKNE"})
    match_markers(bpy.context, rig)
    before = scenes.digest()
    assert guess_markers(bpy.context, rig) == ()
    assert scenes.digest() == before
