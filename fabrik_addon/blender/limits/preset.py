"""Sets the limits of human joints on an armature."""

from functools import lru_cache
from typing import TypeAlias

import bpy
import numpy as np

from ...core.errors import first_few
from ...human.preset import Preset, human_limits, swing_names, why_not_human
from ...human.rest_body import RestBone
from ..rig.armature import RigError, check_rig
from ..settings.control import control_rig, solved_parents
from ..settings.limit_properties import read_settings
from ..settings.limit_values import settings_of
from .editing import Bones, write_all

RestKey: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], bytes, bytes]


def apply_preset(rig: bpy.types.Object, bones: Bones) -> Preset:
    """Apply human joint limits to some bones; the returned preset lists the result for each.

    Raises RigError if no bone can be limited, and LimitPropertyError if a limit can't be stored; then nothing is
    changed.
    """
    check_rig(rig)
    rest = read_rest(rig)
    if control_rig(rig) is not None:
        # Users select controls instead of the bones with limits, so limit all bones.
        bones = [rig.pose.bones[name] for name in rest]
    preset = human_limits(rest, [bone.name for bone in bones])
    if not preset.limits:
        if preset.unplaced:
            name, why = next(iter(preset.unplaced.items()))
            raise RigError(f"{name}: {why}; set its limit by hand")
        if preset.free:
            raise RigError(f"{first_few(preset.free)}: a root is not limited; choose other bones")
        raise RigError(f"No bone of {rig.name!r} has the name of a human bone: set limits by hand")
    limited = [bone for bone in bones if bone.name in preset.limits]
    write_all(limited, [settings_of(preset.limits[bone.name], read_settings(bone)) for bone in limited])
    return preset


def doubt_of_human(rig: bpy.types.Object) -> str:
    """Why an armature does not look like a human; "" if it does."""
    why = why_not_human(read_rest(rig))
    return f"{rig.name!r} does not look like a human: {why}" if why else ""


def read_rest(rig: bpy.types.Object) -> dict[str, RestBone]:
    """The bones of an armature at rest, by name; on a control rig, its deform bones."""
    return rest_of(*rest_key(rig))


def rest_key(rig: bpy.types.Object) -> RestKey:
    """A key for the bones at rest: names, parents' names, (J, 4, 4) matrices column by column and (J,) lengths."""
    bones, above = rig.data.bones, solved_parents(rig)
    matrices, lengths = np.empty((len(bones), 16), dtype=np.float32), np.empty(len(bones), dtype=np.float32)
    bones.foreach_get("matrix_local", matrices.ravel())
    bones.foreach_get("length", lengths)
    placed = [(row, name) for row, name in enumerate(bones.keys()) if name in above]
    rows, names = [row for row, _ in placed], tuple(name for _, name in placed)
    return names, tuple(above[name] for name in names), matrices[rows].tobytes(), lengths[rows].tobytes()


def rest_of(names: tuple[str, ...], parents: tuple[str, ...], matrices: bytes, lengths: bytes) -> dict[str, RestBone]:
    """The bones of a `rest_key`."""
    frames = np.frombuffer(matrices, dtype=np.float32).reshape(-1, 4, 4).transpose(0, 2, 1).astype(np.float64)
    rows = zip(names, parents, frames, np.frombuffer(lengths, dtype=np.float32).tolist(), strict=True)
    return {name: RestBone(parent, frame[:3, 3], frame[:3, :3], length) for name, parent, frame, length in rows}


@lru_cache(maxsize=4)
def swings_of(key: RestKey) -> dict[str, tuple[str, ...]]:
    """The names of the swings of a human's bones, by bone name, from `swing_names`."""
    return swing_names(rest_of(*key))


def described(preset: Preset) -> tuple[str, list[str]]:
    """The result of a preset: a line, and sentences about details for the user."""
    line = f"Human limits set on {len(preset.limits)} bones"
    if preset.unknown:
        line += f"; not changed, because their names are unknown: {first_few(preset.unknown)}"
    reasons = dict.fromkeys(preset.unplaced.values())
    alike = {reason: [name for name, why in preset.unplaced.items() if why == reason] for reason in reasons}
    sentences = [f"{first_few(names)}: {reason}" for reason, names in alike.items()]
    if preset.turned:
        bones = first_few([f"{name} by {angle:.0f}°" for name, angle in preset.turned.items()])
        sentences.append(f"Rolled relative to their joints, so their limits are rotated too: {bones}")
    return line, sentences
