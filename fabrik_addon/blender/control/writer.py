"""Writes poses of a body to its controls, again and again in a drag, or on many frames. Limbs stay on IK or FK."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from bpy.types import Object

from ...core import forward_kinematics
from ...core.arrays import FloatArray
from ...core.model.skeleton import Skeleton
from ...core.rotations import rotation_vector_from_matrix
from ..rig.armature import as_array, meters_per_unit, nearest_rotations
from ..rig.keying import key_in_steps
from ..rig.pose_writer import ChannelGroup, HeldChannels, channel_groups, read_switch
from ..settings.control import FabrikControlRig
from .limbs import LimbOnIk, Update, limbs_kept_on_ik, place_limbs
from .model import ControlModel
from .switches import keyed_switches, switch_limbs, with_linked_values

# Meters. If a location changes by less, its value is not changed.
_LEAST_MOVE: Final = 1e-7
# Rounds of correction. Each one reads the controls' parents again and corrects the remaining error.
_MENDS: Final = 3
# The largest error of a bone without a warning, in meters and radians (0.05 degrees).
MOST_OFF: Final = (1e-4, 8.7e-4)
# The same as a share of the body's size, because the precision of large rigs is lower.
_MOST_OFF_OF_SIZE: Final = 6e-5


class Deviation(NamedTuple):
    """A bone that misses its pose, and its errors in meters and radians."""

    bone: str
    distance: float
    angle: float


class ControlWriter:
    """Writes poses of a body's tree to the controls; the result does not depend on the poses written before.

    Each limb is written to the controls that it is on: its FK controls, or its IK control and pole. Limbs without a
    posed bone are not written; the rig moves them.

    Attributes:
        limbs: by switch, the posed limbs that are on IK and stay on it.
        on_fk: by switch, its value on FK, for limbs that are on FK or are switched to it.
        leaving: by switch, limbs that a bake switches to FK, if their IK controls are placed as well.
    """

    def __init__(
        self,
        update: Update,
        armature: Object,
        setup: FabrikControlRig,
        skeleton: Skeleton,
        bones: Iterable[int] | None = None,
        *,
        known: Mapping[str, LimbOnIk] = MappingProxyType({}),
        baked: bool = False,
    ) -> None:
        """Prepare; nothing is written yet.

        Args:
            update: evaluates the rig.
            armature: the control rig.
            setup: its stored set-up.
            skeleton: the bones of the tree.
            bones: the posed bones, as indices in the skeleton; None: all.
            known: limbs that were placed on IK before.
            baked: for a bake, which keys each written pose. All limbs are first read on FK.
        """
        self._update, self._rig, self._setup, self._skeleton = update, armature, setup, skeleton
        rows = [setup.carriers[name] for name in skeleton.names]
        posed = rows if bones is None else [rows[bone] for bone in bones]
        led = dict.fromkeys(row.switch for row in posed if row.switch)
        self.limbs = limbs_kept_on_ik(armature, setup, led, known, baked=baked)
        self.on_fk = {path: setup.switches[path].fk for path in led if baked or path not in self.limbs}
        self.leaving: dict[str, LimbOnIk] = {}
        # Limbs without a posed bone, and bones below them, are left to the rig.
        names, self._left = {row.name for row in posed}, set[str]()
        for row in rows:
            if row.name not in names and ((row.switch and row.switch not in led) or row.parent in self._left):
                self._left.add(row.name)
        self._before_switches = {path: read_switch(armature, path) for path in with_linked_values(setup, self.on_fk)}
        self._is_root, self._baked = not rows[0].parent, baked
        self._model: ControlModel | None = None
        self._groups: list[ChannelGroup] = []
        self._held: list[HeldChannels] = []
        self._place = np.zeros(3)
        self._wanted: FloatArray | None = None

    @property
    def leaving_ik(self) -> list[str]:
        """The first FK control of each limb that is on IK now, and is switched to FK when the body is posed."""
        paths = [path for path, value in self.on_fk.items() if self._before_switches[path] != value]
        return [next(row.control for row in self._setup.carriers if row.switch == path) for path in paths]

    def write(self, rotations: FloatArray, head: FloatArray | None) -> None:
        """Pose the body by local rotations (J, 4) and the root's head (3,), armature space; None: the head at rest."""
        model = self.ready_model()
        self._wanted = forward_kinematics(self._skeleton, rotations, head)
        self._apply(model, self._wanted)
        self._place_limbs()

    def settle(self) -> list[str]:
        """Check the body's pose and correct it; returns a warning on each bone that cannot be corrected."""
        if self._wanted is None or self._model is None:
            return []
        if not self.changed() and not self.switched():
            # The drag has returned to its start, and everything has been restored.
            return []
        for _ in range(_MENDS):
            self._update()
            if not self.deviations():
                break
            self._apply(self._look(), self._wanted)
            self._place_limbs()
        self._update()
        missed, rows = self.deviations(), self._setup.carriers
        # The bones below a bone that is off are off too. Name the first ones, and the one that is farthest away.
        names, farthest = {each.bone for each in missed}, max((each.distance for each in missed), default=0.0)
        named = [each for each in missed if rows[each.bone].parent not in names or each.distance == farthest]
        return [deviation_warning(self._setup, each, self.limbs) for each in named]

    def _place_limbs(self) -> None:
        """Bring limbs on IK, and those that a bake switches to FK, to the body's wanted pose."""
        every, poses = [*self.limbs.values(), *self.leaving.values()], []
        rows = {name: row for row, name in enumerate(self._skeleton.names)}
        for limb in every:
            # Bones outside the tree keep their current matrices.
            wanted = limb.current_matrices()
            for place, bone in enumerate(limb.bones):
                if bone in rows and self._wanted is not None:
                    wanted[place] = self._wanted[rows[bone]]
            poses.append(wanted)
        if every:
            place_limbs(self._update, every, poses)

    def leave_ik(self) -> list[str]:
        """Switch limbs that miss their pose on any frame of a bake to FK, if allowed; returns a warning on each."""
        off = {
            self._setup.carriers[each.bone].switch: each
            for each in sorted(self.deviations(), key=lambda one: one.distance)
        }
        left = []
        for path in [path for path in self.limbs if path in off]:
            if self._setup.limbs == "AUTO" and not self._setup.switches[path].only_ik:
                self._held[-1].restore(self.limbs.pop(path).controls)
                self.switch([path], to_ik=False)
                control, by = self._setup.carriers[off[path].bone].control, _apart(off[path])
                left.append(f"The limb of {control!r} was switched to FK: with IK it would be off by {by}")
        return left

    def switch(self, paths: Iterable[str], *, to_ik: bool) -> None:
        """Switch limbs to IK without stretch, or to FK."""
        switches = {path: self._setup.switches[path] for path in paths}
        switch_limbs(self._rig, self._setup, {path: each.ik if to_ik else each.fk for path, each in switches.items()})

    def take_back(self) -> None:
        """Restore the controls' channels."""
        for each in self._held:
            each.restore()

    def deviations(self) -> list[Deviation]:
        """The bones that miss their written pose.

        For a limb that stays on IK only the end is checked, except in a bake, because IK may change the lengths of the
        other bones. Limbs that are not written are not checked.
        """
        if self._wanted is None:
            return []
        free = {bone for limb in self.limbs.values() if not self._baked for bone in limb.bones}
        free -= {bone for limb in self.limbs.values() for bone in limb.goes_by}
        free |= self._left
        rows = [row for row, name in enumerate(self._skeleton.names) if name not in free]
        return deviations(self._rig, self._setup, [self._skeleton.names[row] for row in rows], self._wanted[rows])

    def changed(self) -> dict[tuple[str, str], tuple[float, ...]]:
        """Former values of all changed channels, by (bone, channel)."""
        return {key: values for held in self._held for key, values in held.changed().items()}

    def switched(self) -> dict[str, float]:
        """Current values of the switches that have changed since the start, by path."""
        present = {path: read_switch(self._rig, path) for path in self._before_switches}
        return {path: value for path, value in present.items() if value != self._before_switches[path]}

    def key_switches(self, frame: float) -> None:
        """Insert keys for the changed switches on a frame."""
        for path in keyed_switches(self._setup, self.switched()):
            key_in_steps(self._rig, path, frame, self._before_switches[path])

    def ready_model(self) -> ControlModel:
        """The model of the controls, with the written limbs on FK."""
        if self._model is None:
            # Values set along with a switch stay as they are for limbs that are on FK already.
            leaving = {path: fk for path, fk in self.on_fk.items() if fk != self._before_switches[path]}
            switch_limbs(self._rig, self._setup, leaving)
            if self.switched():
                self._update()
            self._model = self._look()
            self._groups = channel_groups(self._rig, self._model.controls)
            on_ik = [name for limb in self.limbs.values() for name in limb.controls]
            self._held = [HeldChannels(self._rig, self._model.controls), HeldChannels(self._rig, on_ik)]
            if self._model.place:
                self._place = np.array(self._rig.pose.bones[self._model.place].location, dtype=np.float64)
        return self._model

    def _look(self) -> ControlModel:
        return ControlModel(self._rig, self._setup, self._skeleton, moves=self._is_root)

    def _apply(self, model: ControlModel, wanted: FloatArray) -> None:
        """Set the channels for matrices (J, 4, 4) of the tree's bones, except for limbs on IK or left to the rig."""
        rotations, location = model.pose(wanted)
        idle = {row.control for row in self._setup.carriers if row.switch in self.limbs or row.name in self._left}
        for group in self._groups:
            group.write(self._rig, rotations[group.rows], but=idle)
        if location is not None:
            bone = self._rig.pose.bones[model.place]
            stays = (np.abs(location - self._place) < _LEAST_MOVE) | np.array(bone.lock_location)
            bone.location = np.where(stays, self._place, location).tolist()


def deviations(rig: Object, setup: FabrikControlRig, names: Sequence[str], wanted: FloatArray) -> list[Deviation]:
    """The bones of a body that miss their wanted matrices (J, 4, 4) in armature space."""
    posed = np.array([as_array(rig.pose.bones[name].matrix) for name in names])
    distances = np.linalg.norm(posed[:, :3, 3] - wanted[:, :3, 3], axis=1)
    turns = np.swapaxes(nearest_rotations(posed[:, :3, :3]), 1, 2) @ wanted[:, :3, :3]
    angles = np.linalg.norm(rotation_vector_from_matrix(turns), axis=1)
    swings = np.arctan2(np.hypot(turns[:, 0, 1], turns[:, 2, 1]), turns[:, 1, 1])
    meters = meters_per_unit(rig)
    most = max(MOST_OFF[0] / meters, _MOST_OFF_OF_SIZE * float(np.ptp(wanted[:, :3, 3], axis=0).max()))
    found = []
    for row in np.flatnonzero((distances > most) | (angles > MOST_OFF[1])).tolist():
        carrier = setup.carriers[names[row]]
        # If the rig determines the twist, compare only the swing.
        angle = float((swings if carrier.found == "SWINGS" else angles)[row])
        if carrier.control in rig.pose.bones and (distances[row] > most or angle > MOST_OFF[1]):
            found.append(Deviation(names[row], meters * float(distances[row]), angle))
    return found


def deviation_warning(setup: FabrikControlRig, deviation: Deviation, on_ik: Collection[str] = ()) -> str:
    """A warning on a bone that its control cannot bring to its pose.

    on_ik: the switches of limbs on IK.
    """
    row = setup.carriers[deviation.bone]
    control = row.goes_by if row.switch in on_ik and row.goes_by else row.control
    return f"Bone {deviation.bone!r} is off by {_apart(deviation)}: control {control!r} can't move it there"


def _apart(deviation: Deviation) -> str:
    return f"{1000.0 * deviation.distance:.1f} mm and {np.degrees(deviation.angle):.2f}°"


@dataclass(frozen=True, eq=False)
class TakeChannels:
    """Channels over F frames, of bones or of a control rig's controls.

    rotations: (F, 4) local rotations, by bone or control. bodies: the solved bone of each. locations: (F, 3) locations,
    by bone or control. switches: values of IK/FK switches, by path. left: warnings on limbs that could not stay on IK.
    """

    rotations: Mapping[str, FloatArray]
    bodies: Mapping[str, str]
    locations: Mapping[str, FloatArray]
    switches: Mapping[str, float]
    left: tuple[str, ...] = ()
