"""Writing poses of a body to its controls, over and over, as dragging does; limbs on IK go to FK."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import bpy
import numpy as np

from ...core import forward_kinematics
from ...core.arrays import BoolArray, FloatArray
from ...core.model.skeleton import Skeleton
from ...core.rotations import angle_between
from ..rig import armature as plain
from ..rig.armature import Tree, nearest_rotations
from ..rig.locks import locked_channels
from ..rig.pose_keeper import read_switch, write_switches
from ..rig.pose_writer import PoseWriter
from ..rig.rotation_modes import from_channels, property_name, to_channels
from ..settings.control import FabrikControlRig, control_rig
from .model import ControlModel

# Radians and shares of a metre: channels that would change by less are kept to the bit.
_NO_TURN: Final = 1e-6
_NO_MOVE: Final = 1e-7
# Once the body stands nearly right, looking again at how what carries the controls stands mends the rest.
_MENDS: Final = 2
# What a bone may be off by, in metres and radians (0.05 degrees), before it is worth a word.
MOST_OFF: Final = (1e-4, 8.7e-4)


class Deviation(NamedTuple):
    """A bone that does not stand where it should, by metres and radians."""

    bone: str
    distance: float
    angle: float


def make_writer(
    context: bpy.types.Context, armature: bpy.types.Object, tree: Tree, bones: Sequence[int], *, moves_root: bool
) -> "PoseWriter | ControlWriter":
    """What writes poses of a tree to an armature, through its controls where it is a control rig."""
    kept = control_rig(armature)
    if kept is None:
        return PoseWriter(armature, tree, bones, moves_root=moves_root)
    return ControlWriter(context, armature, kept, tree)


@dataclass(frozen=True, eq=False)
class _Group:
    """Controls of one rotation mode: their rows among the model's, what their channels held, and which are locked."""

    mode: str
    channel: str
    rows: list[int]
    names: list[str]
    before: FloatArray
    locked: BoolArray


class ControlWriter:
    """Writes poses of a tree of a body to the controls, each as if it followed the channels at the start.

    Attributes:
        on_fk: by path the custom properties that have the tree's limbs on FK, and their values there.
    """

    def __init__(
        self, context: bpy.types.Context | None, armature: bpy.types.Object, kept: FabrikControlRig, tree: Tree
    ) -> None:
        """Nothing is written yet."""
        self._context, self._rig, self._kept, self._tree = context, armature, kept, tree
        names = set(tree.skeleton.names)
        self.on_fk = {
            row.name: row.fk
            for row in kept.switches
            if any(carrier.switch == row.name for carrier in kept.carriers if carrier.name in names)
        }
        self._before_switches = {path: read_switch(armature, path) for path in self.on_fk}
        self._is_root = not kept.carriers[tree.skeleton.names[0]].parent
        self._model: ControlModel | None = None
        self._groups: list[_Group] = []
        self._place = np.zeros(3)
        self._wanted: FloatArray | None = None

    def write(self, rotations: FloatArray, head: FloatArray) -> None:
        """Pose the body by (J, 4) local rotations of the tree's bones, its root's head at (3,) in armature space."""
        model = self.made_ready()
        self._wanted = forward_kinematics(self._tree.skeleton, rotations, head)
        self._apply(model, self._wanted)

    def settle(self) -> list[str]:
        """Look how the body stands, and mend what differs; a sentence on what can't be mended."""
        if self._wanted is None or self._model is None:
            return []
        self._update()
        for _ in range(_MENDS):
            if not self.deviations():
                return []
            self._apply(self._look(), self._wanted)
            self._update()
        return [said(self._kept, each) for each in self.deviations()]

    def take_back(self) -> None:
        """Put the controls' channels back to what they held."""
        bones = self._rig.pose.bones
        for group in self._groups:
            for name, before in zip(group.names, group.before.tolist(), strict=True):
                setattr(bones[name], group.channel, before)
        if self._model is not None and self._model.place:
            bones[self._model.place].location = self._place.tolist()

    def deviations(self) -> list[Deviation]:
        """The carried bones that do not stand where they were written to."""
        if self._wanted is None:
            return []
        return deviations(self._rig, self._kept, self._tree.skeleton.names, self._wanted)

    def changed(self) -> Iterator[tuple[str, str]]:
        """(bone, channel) of what no longer holds what it held at the start."""
        for group in self._groups:
            for name, before in zip(group.names, group.before, strict=True):
                if np.abs(np.array(getattr(self._rig.pose.bones[name], group.channel)) - before).max() > _NO_TURN:
                    yield name, group.channel
        if self._model is not None and self._model.place:
            place = self._rig.pose.bones[self._model.place]
            if np.abs(np.array(place.location) - self._place).max() > _NO_TURN:
                yield place.name, "location"

    def switched(self) -> list[str]:
        """The paths of the custom properties that no longer hold what they held at the start."""
        return [path for path, value in self._before_switches.items() if read_switch(self._rig, path) != value]

    def switch(self) -> None:
        """Put the limbs on FK."""
        write_switches(self._rig, self.on_fk)

    def _names_on_ik(self) -> set[str]:
        """The bones that are not on FK."""
        off = {path for path, value in self.on_fk.items() if read_switch(self._rig, path) != value}
        return {row.name for row in self._kept.carriers if row.switch in off}

    def _update(self) -> None:
        if self._context is not None:
            self._context.view_layer.update()

    def made_ready(self) -> ControlModel:
        """The model, with the limbs on FK."""
        on_ik = self._names_on_ik() if self._model is None and self._context is None else ()
        self.switch()
        if self._model is None:
            self._update()
            self._model = self._look(on_ik)
            self._note(self._model)
        return self._model

    def _note(self, model: ControlModel) -> None:
        """Take note of what the channels hold."""
        bones = self._rig.pose.bones
        modes = [bones[name].rotation_mode for name in model.controls]
        for mode in sorted(set(modes)):
            rows = [row for row, each in enumerate(modes) if each == mode]
            names, channel = [model.controls[row] for row in rows], property_name(mode)
            before = np.array([getattr(bones[name], channel) for name in names], dtype=np.float64)
            locked = np.array([locked_channels(bones[name]) for name in names])
            self._groups.append(_Group(mode, channel, rows, names, before, locked))
        if model.place:
            self._place = np.array(bones[model.place].location, dtype=np.float64)

    def _look(self, on_ik: Collection[str] = ()) -> ControlModel:
        return ControlModel(self._rig, self._kept, self._tree.skeleton, moves=self._is_root, on_ik=on_ik)

    def _apply(self, model: ControlModel, wanted: FloatArray) -> None:
        """Set the channels for (J, 4, 4) matrices of the tree's bones."""
        pose, bones = model.pose(wanted), self._rig.pose.bones
        for group in self._groups:
            turned = pose.rotations[group.rows]
            _, values = to_channels(group.mode, turned[None], previous=group.before)
            still = angle_between(from_channels(group.mode, group.before), turned) < _NO_TURN
            for name, each in zip(
                group.names, np.where(still[:, None] | group.locked, group.before, values[0]).tolist(), strict=True
            ):
                setattr(bones[name], group.channel, each)
        if pose.place is not None:
            bone = bones[model.place]
            stays = (np.abs(pose.place - self._place) < _NO_MOVE) | np.array(bone.lock_location)
            bone.location = np.where(stays, self._place, pose.place).tolist()


def deviations(
    rig: bpy.types.Object, kept: FabrikControlRig, names: Sequence[str], wanted: FloatArray
) -> list[Deviation]:
    """Of J bones of a body those that their controls have not brought to (J, 4, 4) matrices, armature space."""
    posed = np.array([rig.pose.bones[name].matrix for name in names], dtype=np.float64)
    distances = np.linalg.norm(posed[:, :3, 3] - wanted[:, :3, 3], axis=1)
    turns = np.swapaxes(nearest_rotations(posed[:, :3, :3]), 1, 2) @ wanted[:, :3, :3]
    found = []
    for name, distance, turn in zip(names, distances.tolist(), turns, strict=True):
        carrier = kept.carriers[name]
        # Where the rig makes the twist itself it is its own.
        angle = _lean(turn) if carrier.found == "SWINGS" else _angle(turn)
        if carrier.control in rig.pose.bones and (distance > MOST_OFF[0] or angle > MOST_OFF[1]):
            found.append(Deviation(name, distance, angle))
    return found


def said(kept: FabrikControlRig, deviation: Deviation) -> str:
    """A sentence on a bone that its control can't bring where it should be."""
    name, distance, angle = deviation
    return (
        f"Bone {name!r} is off by {1000.0 * distance:.1f} mm and {np.degrees(angle):.2f}°: "
        f"control {kept.carriers[name].control!r} can't bring it there"
    )


def _angle(matrix: FloatArray) -> float:
    """Radians that a rotation matrix turns by."""
    sine = np.linalg.norm([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])
    return float(np.arctan2(sine, np.trace(matrix) - 1.0))


def write_pose(
    rig: bpy.types.Object,
    skeleton: Skeleton,
    rotations: FloatArray,
    root_location: FloatArray | None = None,
    bones: Sequence[int] | None = None,
    *,
    context: bpy.types.Context | None = None,
) -> list[str]:
    """As `rig.armature.write_pose`, and through the controls of a control rig; sentences on bones that can't follow.

    context: where the rig is evaluated, to look how it came out; None inside Blender's handlers, which can't do that.
    """
    kept = control_rig(rig)
    if kept is None:
        plain.write_pose(rig, skeleton, rotations, root_location, bones)
        return []
    head = skeleton.rest[0, :3, 3] if root_location is None else root_location
    writer = ControlWriter(context, rig, kept, Tree(skeleton, rotations, head))
    writer.write(rotations, head)
    rig.update_tag(refresh={"DATA"})
    return [] if context is None else writer.settle()


def settle(writers: Sequence[PoseWriter | ControlWriter]) -> list[str]:
    """Have bodies stand where they were written to; a sentence on each bone that can't."""
    return [sentence for each in writers if isinstance(each, ControlWriter) for sentence in each.settle()]


def key_switches(armature: bpy.types.Object, writers: Sequence[PoseWriter | ControlWriter]) -> None:
    """Key the properties on the present frame that handed limbs to other controls."""
    for path in (path for each in writers if isinstance(each, ControlWriter) for path in each.switched()):
        armature.keyframe_insert(path)


def _lean(matrix: FloatArray) -> float:
    """Radians by which a rotation matrix turns Y away from itself."""
    return float(np.arctan2(np.hypot(matrix[0, 1], matrix[2, 1]), matrix[1, 1]))
