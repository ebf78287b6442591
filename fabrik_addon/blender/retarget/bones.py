"""The rig's list of bone pairs: a bone of the rig and the source bone that it follows."""

import os
from collections.abc import Iterable, Sequence

import bpy
import numpy as np

from ...markers.steps import finish
from ...retarget.bodies import find_pairs
from ...retarget.motion import RetargetError
from ...retarget.pairs import Pair, check_bone_map, read_bone_map, write_bone_map
from ..settings.rig import rig_settings
from .retarget import body_of, check_source, sample_source


def match_bones(context: bpy.types.Context, rig: bpy.types.Object) -> tuple[Pair, ...]:
    """Fill the rig's list with pairs matched by name; raises RetargetError for an invalid source or without a match."""
    source = check_source(rig_settings(rig).retarget.source, rig)
    frame = np.array([context.scene.frame_current])
    motion, _ = finish(sample_source(context, source, rig, frame))
    pairs = find_pairs(motion, body_of(rig).skeleton)
    set_pairs(rig, pairs)
    return pairs


def set_pairs(rig: bpy.types.Object, pairs: Iterable[Pair]) -> None:
    """Replace the rig's list of pairs."""
    kept = rig_settings(rig).retarget
    kept.pairs.clear()
    for pair in pairs:
        entry = kept.pairs.add()
        entry.name, entry.source, entry.before, entry.share = pair.bone, pair.source, pair.before, pair.share
    kept.active_pair = 0


def pairs_of(rig: bpy.types.Object) -> list[Pair]:
    """The enabled pairs of the rig's list."""
    listed = rig_settings(rig).retarget.pairs
    return [Pair(one.name, one.source, one.before, one.share) for one in listed if one.enabled and one.source]


def checked_pairs(pairs: Sequence[Pair], rig: bpy.types.Object, source: bpy.types.Object) -> Sequence[Pair] | None:
    """The pairs, or None if there are none; raises MapError if a pair has an unknown bone."""
    check_bone_map(pairs, rig.data.bones.keys(), source.data.bones.keys())
    return pairs or None


def save_pairs(rig: bpy.types.Object, path: str | os.PathLike[str]) -> int:
    """Write the list to a file; returns the number of its bones."""
    pairs = pairs_of(rig)
    if not pairs:
        raise RetargetError(f"{rig.name!r} has no mapped bones: press Map Bones first")
    write_bone_map(path, pairs)
    return len(pairs)


def load_pairs(rig: bpy.types.Object, path: str | os.PathLike[str]) -> int:
    """Read the list from a file; returns the number of its bones. Raises MapError if it names an unknown bone."""
    pairs = read_bone_map(path)
    source = rig_settings(rig).retarget.source
    named = [name for pair in pairs for name in (pair.source, pair.before)]
    check_bone_map(pairs, rig.data.bones.keys(), named if source is None else source.data.bones.keys())
    set_pairs(rig, pairs)
    return len(pairs)
