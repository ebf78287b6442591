"""Poses stored with a rig. Solving chooses a pose near the preferred one among all poses that meet the targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bpy.types import Object

from ...core.arrays import FloatArray
from ...core.rotations import IDENTITY
from ..control.posed_rig import posed_rig
from ..rig import keyframes
from ..rig.armature import Tree, floats, root_place
from ..rig.keyframes import bone_path
from ..rig.rotation_modes import from_channels, property_name, to_channels
from ..settings.rig import rig_settings


def store_pose(rig: Object, stored: Any) -> None:
    """Store the current pose of all bones in a collection of `FabrikStoredBone`, replacing its contents."""
    stored.clear()
    for name, rotation, location in zip(*posed_rig(rig).pose(), strict=True):
        kept = stored.add()
        kept.name, kept.rotation, kept.location = name, rotation, location


def keep_pose(rig: Object) -> str:
    """Store the current pose of a rig as its preferred pose; returns a line to show."""
    settings = rig_settings(rig)
    store_pose(rig, settings.kept_pose)
    settings.preferred_pose = "KEPT"
    return f"Stored the preferred pose of {rig.name!r}"


def preferred_pose(
    rig: Object,
    tree: Tree,
    start: FloatArray,
    start_location: FloatArray,
    *,
    bones: Sequence[int] | slice = slice(None),
    moves_root: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """A rig's preferred pose: (J, 4) local rotations of a tree's bones, and (3,) its root's head in armature space.

    Args:
        rig: the armature.
        tree: its bones.
        start: (J, 4) the preferred pose if no other is chosen or stored, such as the pose at a drag's start.
        start_location: (3,) the root's head in that pose.
        bones: indices in the skeleton of posed bones; the others keep their rotation in `start`.
        moves_root: whether the root's head is posed as well.
    """
    settings = rig_settings(rig)
    is_kept = settings.preferred_pose == "KEPT" and len(settings.kept_pose) > 0
    if settings.preferred_pose != "REST" and not is_kept:
        return start, start_location
    # Bones that are not in the stored pose are at rest.
    names, kept = tree.skeleton.names, {bone.name: bone for bone in (settings.kept_pose if is_kept else ())}
    rotations = np.array([kept[name].rotation if name in kept else IDENTITY for name in names], dtype=np.float64)
    rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
    mixed = start.copy()
    mixed[bones] = rotations[bones]
    location = kept[names[0]].location if names[0] in kept else (0.0, 0.0, 0.0)
    return mixed, root_place(rig.pose.bones[names[0]], location) if moves_root else start_location


def kept_pose_key(rig: Object) -> tuple[str, bytes]:
    """A key for the choice of a preferred pose."""
    settings = rig_settings(rig)
    chosen: str = settings.preferred_pose
    numbers = np.empty(7 * len(settings.kept_pose) if chosen == "KEPT" else 0, dtype=np.float32)
    if len(numbers):
        settings.kept_pose.foreach_get("rotation", numbers[: 4 * len(settings.kept_pose)])
        settings.kept_pose.foreach_get("location", numbers[4 * len(settings.kept_pose) :])
    return chosen, numbers.tobytes()


class BasePose:
    """The base pose of a rig on a frame, from its current action, or else from the stored pose."""

    def __init__(self, rig: Object, frame: float) -> None:
        """Find the curves and the stored pose."""
        self._rig, self._frame, stored = rig, frame, rig_settings(rig).stored_pose
        self._rows = {name: row for row, name in enumerate(stored.keys())}
        self._rotations, self._locations = floats(stored, "rotation", 4), floats(stored, "location", 3)
        self._curves = keyframes.curves_by_path(keyframes.curves(rig))

    def rotations(self, bones: Sequence[str]) -> FloatArray:
        """(B, 4) local rotations of bones, w x y z; bones without data are at rest."""
        known = np.concatenate([self._rotations, [IDENTITY]])
        found: FloatArray = known[[self._rows.get(bone, -1) for bone in bones]]
        posed = [self._rig.pose.bones[bone] for bone in bones if self._curves]
        for mode in {bone.rotation_mode for bone in posed}:
            channel = property_name(mode)
            paths = [(row, bone.path_from_id(channel)) for row, bone in enumerate(posed) if bone.rotation_mode == mode]
            paths = [(row, path) for row, path in paths if path in self._curves]
            if paths:
                rows = [row for row, _ in paths]
                values = to_channels(mode, found[rows][None])[1][0]
                for own, (_, path) in zip(values, paths, strict=True):
                    self._keyed(path, own)
                found[rows] = from_channels(mode, values)
        return found

    def root_place(self, bone: str) -> FloatArray:
        """(3,) the head of a root bone in armature space."""
        pose_bone, row = self._rig.pose.bones[bone], self._rows.get(bone)
        location = np.array(pose_bone.location, dtype=np.float64) if row is None else self._locations[row].copy()
        return root_place(pose_bone, self._keyed(bone_path(bone, "location"), location))

    def _keyed(self, path: str, values: FloatArray) -> FloatArray:
        """Replace a channel's values (n,) by those of its curves on the frame, where there are any."""
        for curve in self._curves.get(path, ()):
            values[curve.array_index] = curve.evaluate(self._frame)
        return values
