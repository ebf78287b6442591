"""Guesses bones for markers with unknown labels from how they move relative to the other markers."""

import bpy

from ...human.naming_schemes import match as match_bones
from ...markers.assign import Guess, assign_by_motion
from ...markers.mapping.labels import is_virtual, parts_of
from ..control.posed_rig import posed_rig
from ..limits.preset import read_rest
from ..rig.spaces import meters_per_unit
from ..settings.limit_properties import read_limits
from ..settings.rig import rig_settings
from .clip import marker_clip, recorded_range, targets_of
from .matching import SceneMarker, mapping_of, set_entry


def guess_markers(context: bpy.types.Context, rig: bpy.types.Object) -> tuple[Guess, ...]:
    """Assign markers without a bone to the bones with which they move, and mark them as guesses; returns the guesses.

    Markers that were assigned by their label or by hand keep their bone. Earlier guesses are made again. There are no
    guesses if too few markers are assigned, if the names of the rig's bones are unknown, or for markers that move with
    no bone.
    """
    capture = rig_settings(rig).capture
    for entry in capture.markers:
        if not entry.is_certain:
            entry.bone, entry.guess = "", -1.0
    known, rest = mapping_of(capture), read_rest(rig)
    roles = match_bones(rest)
    names = {entry.marker for entry in known}
    there = [
        SceneMarker(entry.name, entry.target, entry.target_bone)
        for entry in capture.markers
        if entry.target is not None and (entry.name in names or (not entry.bone and not is_virtual(entry.name)))
    ]
    if not known or not roles or len(there) <= len(known):
        return ()
    tree = max(
        posed_rig(rig).trees(at_rest=True), key=lambda each: sum(one.bone in each.skeleton.names for one in known)
    )
    skeleton = tree.skeleton
    guesses = assign_by_motion(
        skeleton,
        [entry for entry in known if entry.bone in skeleton.names],
        marker_clip(context.scene, rig, there, recorded_range(context.scene, targets_of(there))),
        parts_of(roles),
        rest,
        limits=read_limits(rig, skeleton.names),
        meter=1.0 / meters_per_unit(rig),
    )
    for guess in guesses:
        set_entry(capture.markers[guess.entry.marker], guess.entry, guess.residual * meters_per_unit(rig))
    return guesses
