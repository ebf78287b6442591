"""Writing poses of a body to its controls, over and over, as dragging does; limbs on IK go to FK."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import bpy
import numpy as np

from ...core import forward_kinematics
from ...core.arrays import FloatArray
from ...core.model.skeleton import Skeleton
from ...core.rotations import rotation_vector_from_matrix
from ..rig import pose_writer as plain
from ..rig.armature import Tree, nearest_rotations
from ..rig.keying import key_in_steps
from ..rig.pose_keeper import read_switch
from ..rig.pose_writer import ChannelGroup, HeldChannels, PoseWriter, channel_groups
from ..rig.spaces import as_array, metres_per_unit
from ..settings.control import FabrikControlRig, control_rig
from .body import bones_on_ik
from .limbs import LimbOnIk, Update, limbs_that_stay, place_limbs
from .model import ControlModel
from .switches import hand_over, keyed_switches, set_along

# A share of a metre: a location that would change by less is kept to the bit.
_LEAST_MOVE: Final = 1e-7
# Once the body stands nearly right, looking again at how what carries the controls stands mends the rest.
_MENDS: Final = 2
# What a bone may be off by, in metres and radians (0.05 degrees), before it is worth a word.
MOST_OFF: Final = (1e-4, 8.7e-4)
# As a share of the body's size: what is built in other units, without a scale, is in single precision all the same.
_MOST_OFF_OF_SIZE: Final = 6e-5


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
    return ControlWriter(context, armature, kept, tree.skeleton)


class ControlWriter:
    """Writes poses of a tree of a body to the controls, each as if it followed the channels at the start.

    Attributes:
        on_fk: by path the custom properties that have the tree's limbs on FK, and their values there.
    """

    def __init__(
        self,
        context: bpy.types.Context | None,
        armature: bpy.types.Object,
        kept: FabrikControlRig,
        skeleton: Skeleton,
    ) -> None:
        """Nothing is written yet."""
        self._context, self._rig, self._kept, self._skeleton = context, armature, kept, skeleton
        names = set(skeleton.names)
        self.on_fk = {
            row.name: row.fk
            for row in kept.switches
            if any(carrier.switch == row.name for carrier in kept.carriers if carrier.name in names)
        }
        self._before_switches = {path: read_switch(armature, path) for path in set_along(kept, self.on_fk)}
        self._is_root = not kept.carriers[skeleton.names[0]].parent
        self._model: ControlModel | None = None
        self._groups: list[ChannelGroup] = []
        self._held: list[HeldChannels] = []
        self._place = np.zeros(3)
        self._wanted: FloatArray | None = None

    def write(self, rotations: FloatArray, head: FloatArray | None) -> None:
        """Pose the body by (J, 4) local rotations of the tree's bones, its root's head at (3,) in armature space.

        Without a head it is where it rests.
        """
        model = self.made_ready()
        self._wanted = forward_kinematics(self._skeleton, rotations, head)
        self._apply(model, self._wanted)

    def settle(self) -> list[str]:
        """Look how the body stands, and mend what differs; a sentence on what can't be mended.

        Limbs that stay on IK go back to it.
        """
        if self._wanted is None or self._model is None:
            return []
        if not any(self.changed()) and not self.switched():
            # All was put back meanwhile: a drag that came back to its start.
            return []
        self._update()
        for _ in range(_MENDS):
            if not self.deviations():
                break
            self._apply(self._look(), self._wanted)
            self._update()
        limbs = self.limbs_that_stay()
        left = self._back_to_ik(limbs, self._wanted) if limbs else []
        off = [each for each in self.deviations() if self._kept.carriers[each.bone].switch not in limbs]
        return [*left, *(said(self._kept, each) for each in off)]

    def _back_to_ik(self, limbs: dict[str, LimbOnIk], wanted: FloatArray) -> list[str]:
        """Have limbs stand on IK as they do on FK; a sentence on each that its IK can't bring there."""
        on_fk = {path: HeldChannels(self._rig, self._carrying(path)) for path in limbs}
        on_ik = {path: HeldChannels(self._rig, limb.controls) for path, limb in limbs.items()}
        self._place_on_ik(self._update, limbs, wanted)
        left = self.not_on_ik(limbs)
        for path, _ in left:
            if not self.may_leave_ik(path):
                continue
            on_ik.pop(path).put_back()
            on_fk[path].put_back()
            hand_over(self._rig, self._kept, {path: self._kept.switches[path].fk})
        self._held += on_ik.values()
        self._update()
        return [sentence for _, sentence in left]

    def may_leave_ik(self, path: str) -> bool:
        """Whether a limb that its IK can't bring where it should be may go to FK."""
        return self._kept.limbs == "AUTO" and not self._kept.switches[path].only_ik

    def not_on_ik(self, limbs: Iterable[str]) -> list[tuple[str, str]]:
        """Of limbs that were placed on IK those that do not stand where they were wanted, with a sentence on each."""
        off = {self._kept.carriers[each.bone].switch: each for each in sorted(self.deviations(), key=_distance)}
        went = {True: "went to FK: its IK would leave", False: "stays on IK, which leaves"}
        return [
            (path, f"The limb of {off[path].bone!r} {went[self.may_leave_ik(path)]} it off by {_apart(off[path])}")
            for path in limbs
            if path in off
        ]

    def _place_on_ik(self, update: Update, limbs: Mapping[str, LimbOnIk], wanted: FloatArray) -> None:
        """Bring limbs on IK to where the body is wanted, (J, 4, 4); what carries them on FK holds what it held."""
        self._wanted = wanted
        for path in limbs:
            self._held[0].put_back(self._carrying(path))
        hand_over(self._rig, self._kept, {path: self._kept.switches[path].ik for path in limbs})
        of_limbs = [wanted[[self._skeleton.index(bone) for bone in limb.bones]] for limb in limbs.values()]
        if limbs:
            place_limbs(update, list(limbs.values()), of_limbs)

    def _carrying(self, path: str) -> list[str]:
        """The controls that carry a limb on FK."""
        return [
            row.control for row in self._kept.carriers if row.switch == path and row.control in self._rig.pose.bones
        ]

    def limbs_that_stay(
        self, known: Mapping[str, LimbOnIk] = MappingProxyType({}), *, keyed: bool = False
    ) -> dict[str, LimbOnIk]:
        """The limbs that are to be on IK once the body is posed, as `limbs.limbs_that_stay`."""
        before = {path: self._before_switches[path] for path in self.on_fk}
        return limbs_that_stay(self._rig, self._kept, before, known, keyed=keyed)

    def write_on_ik(
        self, update: Update, limbs: Mapping[str, LimbOnIk], rotations: FloatArray, head: FloatArray | None
    ) -> None:
        """As `write`, with some limbs on IK, where they are placed at once; the others go to FK."""
        model = self.made_ready({path: value for path, value in self.on_fk.items() if path not in limbs})
        wanted = forward_kinematics(self._skeleton, rotations, head)
        self._apply(model, wanted)
        self._place_on_ik(update, limbs, wanted)

    def take_back(self) -> None:
        """Put the controls' channels back to what they held."""
        for each in self._held:
            each.put_back()

    def deviations(self) -> list[Deviation]:
        """The carried bones that do not stand where they were written to."""
        if self._wanted is None:
            return []
        return deviations(self._rig, self._kept, self._skeleton.names, self._wanted)

    def changed(self) -> Iterator[tuple[str, str]]:
        """(bone, channel) of what no longer holds what it held at the start."""
        for each in self._held:
            yield from each.changed()

    def switched(self) -> dict[str, float]:
        """The numbers that hand limbs over which no longer hold what they held at the start, by path."""
        present = {path: read_switch(self._rig, path) for path in self._before_switches}
        return {path: value for path, value in present.items() if value != self._before_switches[path]}

    def key_switches(self, frame: float) -> None:
        """Key those."""
        for path in keyed_switches(self._kept, self.switched()):
            key_in_steps(self._rig, path, frame, self._before_switches[path])

    def _update(self) -> None:
        if self._context is not None:
            self._context.view_layer.update()

    def made_ready(self, on_fk: Mapping[str, float] | None = None) -> ControlModel:
        """The model, with all limbs, or some by their switches, on FK."""
        on_ik = bones_on_ik(self._rig) if self._model is None and self._context is None else ()
        hand_over(self._rig, self._kept, self.on_fk if on_fk is None else on_fk)
        if self._model is None:
            self._update()
            self._model = self._look(on_ik)
            self._groups = channel_groups(self._rig, self._model.controls)
            self._held = [HeldChannels(self._rig, self._model.controls)]
            if self._model.place:
                self._place = np.array(self._rig.pose.bones[self._model.place].location, dtype=np.float64)
        return self._model

    def _look(self, on_ik: Collection[str] = ()) -> ControlModel:
        return ControlModel(self._rig, self._kept, self._skeleton, moves=self._is_root, on_ik=on_ik)

    def _apply(self, model: ControlModel, wanted: FloatArray) -> None:
        """Set the channels for (J, 4, 4) matrices of the tree's bones."""
        pose = model.pose(wanted)
        for group in self._groups:
            group.write(self._rig, pose.rotations[group.rows])
        if pose.place is not None:
            bone = self._rig.pose.bones[model.place]
            stays = (np.abs(pose.place - self._place) < _LEAST_MOVE) | np.array(bone.lock_location)
            bone.location = np.where(stays, self._place, pose.place).tolist()


def deviations(
    rig: bpy.types.Object, kept: FabrikControlRig, names: Sequence[str], wanted: FloatArray
) -> list[Deviation]:
    """Of J bones of a body those that their controls have not brought to (J, 4, 4) matrices, armature space."""
    posed = np.array([as_array(rig.pose.bones[name].matrix) for name in names])
    distances = np.linalg.norm(posed[:, :3, 3] - wanted[:, :3, 3], axis=1)
    turns = np.swapaxes(nearest_rotations(posed[:, :3, :3]), 1, 2) @ wanted[:, :3, :3]
    angles, leans = np.linalg.norm(rotation_vector_from_matrix(turns), axis=1), _leans(turns)
    metres = metres_per_unit(rig)
    most = max(MOST_OFF[0] / metres, _MOST_OFF_OF_SIZE * float(np.ptp(wanted[:, :3, 3], axis=0).max()))
    found = []
    for row in np.flatnonzero((distances > most) | (angles > MOST_OFF[1])).tolist():
        carrier = kept.carriers[names[row]]
        # Where the rig makes the twist itself it is its own.
        angle = float((leans if carrier.found == "SWINGS" else angles)[row])
        if carrier.control in rig.pose.bones and (distances[row] > most or angle > MOST_OFF[1]):
            found.append(Deviation(names[row], metres * float(distances[row]), angle))
    return found


def said(kept: FabrikControlRig, deviation: Deviation) -> str:
    """A sentence on a bone that its control can't bring where it should be."""
    control = kept.carriers[deviation.bone].control
    return f"Bone {deviation.bone!r} is off by {_apart(deviation)}: control {control!r} can't bring it there"


def _distance(deviation: Deviation) -> float:
    return deviation.distance


def _apart(deviation: Deviation) -> str:
    return f"{1000.0 * deviation.distance:.1f} mm and {np.degrees(deviation.angle):.2f}°"


def write_pose(
    rig: bpy.types.Object,
    skeleton: Skeleton,
    rotations: FloatArray,
    root_location: FloatArray | None = None,
    bones: Sequence[int] | None = None,
    *,
    context: bpy.types.Context,
) -> list[str]:
    """As `rig.pose_writer.write_pose`, and through the controls of a control rig; sentences on bones that can't follow.

    context: where the rig is evaluated, to look how it came out.
    """
    kept = control_rig(rig)
    if kept is None:
        plain.write_pose(rig, skeleton, rotations, root_location, bones)
        return []
    writer = ControlWriter(context, rig, kept, skeleton)
    writer.write(rotations, root_location)
    rig.update_tag(refresh={"DATA"})
    return writer.settle()


def write_live(
    rig: bpy.types.Object,
    skeleton: Skeleton,
    rotations: FloatArray,
    root_location: FloatArray | None,
    bones: Sequence[int],
    *,
    update: Update,
    known: dict[str, LimbOnIk],
) -> None:
    """As `write_pose`, over and over and nothing said; limbs that stay on IK go on from where they are.

    update: evaluates the rig, which is done for such limbs alone. known: keeps those from one pose to the next.
    """
    kept = control_rig(rig)
    if kept is None:
        plain.write_pose(rig, skeleton, rotations, root_location, bones)
        return
    writer = ControlWriter(None, rig, kept, skeleton)
    limbs = writer.limbs_that_stay(known)
    known.clear()
    known.update(limbs)
    writer.write_on_ik(update, limbs, rotations, root_location)
    rig.update_tag(refresh={"DATA"})


def settle(writers: Sequence[PoseWriter | ControlWriter]) -> list[str]:
    """Have bodies stand where they were written to; a sentence on each bone that can't."""
    return [sentence for each in writers if isinstance(each, ControlWriter) for sentence in each.settle()]


def key_switches(context: bpy.types.Context, writers: Sequence[PoseWriter | ControlWriter]) -> None:
    """Key the numbers on the present frame that handed limbs to other controls."""
    for writer in (each for each in writers if isinstance(each, ControlWriter)):
        writer.key_switches(context.scene.frame_current_final)


def _leans(matrices: FloatArray) -> FloatArray:
    """(J,) radians by which (J, 3, 3) rotations turn Y away from itself."""
    return np.asarray(np.arctan2(np.hypot(matrices[:, 0, 1], matrices[:, 2, 1]), matrices[:, 1, 1]))
