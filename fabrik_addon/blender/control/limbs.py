"""Limbs on IK: places their controls so that the limb has its solved pose.

The controls are placed in closed form: the IK control moves rigidly with the limb's end, heels and toes with their
bones, and the pole, or the control that rotates the limb, about the line from the limb's root to its end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from bpy.types import Object, PoseBone
from mathutils import Matrix, Vector

from ...core.arrays import FloatArray
from ...core.rotations import quaternion_from_matrix, rotation_vector_from_quaternion
from ..rig.armature import as_array, nearest_rotations
from ..rig.locks import moved_by
from ..rig.pose_writer import HeldChannels, read_switch
from ..settings.control import FabrikControlRig, moves
from ..settings.rig import rig_settings
from .model import add_to_channels, free_channels

# A limb's end is in place if its errors (distances, and angles times bone lengths) are below this share of the limb's
# length.
_PLACED: Final = 4e-5
# A placement helps if it leaves less than this share of the error.
_GAIN: Final = 0.9
# A limb has no bend plane if its joints are closer than this share of its length to the line from root to end.
_STRAIGHT: Final = 1e-3
# An IK control holds the limb's end if moving both together leaves at most this share of the error.
_NEARER: Final = 0.1
# Ends are led as posed, then as at rest, and once more if that helped.
_MOST_LEADS: Final = 3
# Radians. Half of this is the error of single precision at the smallest bend.
_IN_PLANE: Final = 3e-4
# A control is the pole if rotating it by at least _TRIED, in radians, rotates the limb by more than this share: 27 %
# for a wolf, until its heel has followed.
_TRIED: Final = 0.03
_FOLLOWS: Final = 0.1
# Rounds of leading ends and rotating poles. People need up to 3, wolves with paws up to 10.
_MOST_TURNS: Final = 12
# A function that evaluates the rig.
Update: TypeAlias = Callable[[], object]


class LimbOnIk:
    """A limb on IK: its bones and its controls.

    Attributes:
        bones, controls: their names.
        goes_by: by bone name, the control that it follows.
        turned_by: by name of another bone, the control that rotates it, such as a paw's heel or a toe's control.
        lengths: (B,) bone lengths. size: length of the limb.
        pole: the control that rotates the limb about the line from its root to its end, "" while unknown.
    """

    def __init__(self, rig: Object, bones: Sequence[str], controls: Sequence[str]) -> None:
        """Read the bones."""
        self.rig, self.bones, self.controls = rig, list(bones), list(controls)
        self.lengths = np.array([rig.data.bones[name].length for name in bones])
        self.size = float(self.lengths.sum())
        self.goes_by: dict[str, str] = {}
        self.turned_by: dict[str, str] = {}
        self.pole = ""

    def current_matrices(self) -> FloatArray:
        """(B, 4, 4) current matrices of the bones in armature space, without scale."""
        matrices = np.array([as_array(self.rig.pose.bones[name].matrix) for name in self.bones])
        matrices[:, :3, :3] = nearest_rotations(matrices[:, :3, :3])
        return matrices

    def differences(self, there: FloatArray, here: FloatArray) -> FloatArray:
        """(6 B,) differences between matrices (B, 4, 4) as lengths: positions, and rotations times bone lengths."""
        turns = quaternion_from_matrix(there[:, :3, :3] @ np.swapaxes(here[:, :3, :3], 1, 2))
        vectors = rotation_vector_from_quaternion(turns) * self.lengths[:, None]
        return np.concatenate([there[:, :3, 3] - here[:, :3, 3], vectors], axis=1).ravel()

    def hold(self, goes_by: Mapping[str, str], others: Mapping[str, str] = MappingProxyType({})) -> None:
        """Set the control of each held bone: the IK control for the last one, heels for bones above the end.

        others: the controls of bones below the end, such as toes.
        """
        heels = dict(goes_by)
        self.goes_by = dict([heels.popitem()] if heels else [])
        self.turned_by = heels | {bone: control for bone, control in others.items() if bone not in goes_by}

    def end_error(self, wanted: FloatArray) -> float:
        """The largest difference of bones held by controls from their matrices (B, 4, 4), as a length."""
        off = np.abs(self.differences(wanted, self.current_matrices()).reshape(len(self.bones), 6))
        # Only rotations of heels' and toes' bones, because their positions depend on lengths that IK changes.
        turned = [off[self.bones.index(bone), 3:] for bone in self.turned_by]
        return float(np.concatenate([*turned, *(off[self.bones.index(bone)] for bone in self.goes_by), [0.0]]).max())

    def is_held(self, wanted: FloatArray) -> bool:
        """Whether the IK controls hold the limb's end at its matrices among `wanted` (B, 4, 4), armature space."""
        return self.end_error(wanted) <= _PLACED * self.size

    def lead(self, wanted: FloatArray, *, as_at_rest: bool) -> None:
        """Move the controls of held bones rigidly with these to matrices (B, 4, 4), from the current state or rest."""
        here = self.current_matrices()
        for bone, leader in (self.goes_by | self.turned_by).items():
            control, rests, row = self.rig.pose.bones[leader], self.rig.data.bones, self.bones.index(bone)
            held = rests[bone].matrix_local if as_at_rest else Matrix(here[row].tolist())
            there = Matrix(wanted[row].tolist()) @ held.inverted()
            there = there @ (rests[leader].matrix_local if as_at_rest else control.matrix)
            self._move_to(control, there, turns_only=bone in self.turned_by)

    def plane_angle(self, wanted: FloatArray) -> float:
        """Radians about the line from root to end, from the limb's bend plane to the plane of matrices (B, 4, 4).

        Zero if the limb is straight, or the angle is negligible.
        """
        sides = []
        for matrices in (self.current_matrices(), wanted):
            heads = matrices[:, :3, 3]
            axis = heads[self._first_held] - heads[0]
            axis = axis / max(float(np.linalg.norm(axis)), 1e-12)
            arms = heads[1 : self._first_held] - heads[0]
            sides.append((arms - np.outer(arms @ axis, axis)).sum(axis=0))
        least = min(float(np.linalg.norm(side)) for side in sides)
        if least < _STRAIGHT * self.size:
            return 0.0
        angle = float(np.arctan2(np.cross(*sides) @ axis, sides[0] @ sides[1]))
        return angle if abs(angle) > _IN_PLANE else 0.0

    def rotate(self, name: str, angle: float) -> None:
        """Rotate a control about the line from the limb's root to its end; IK follows its pole or its root."""
        heads, control = self.current_matrices()[:, :3, 3], self.rig.pose.bones[name]
        axis, root = heads[self._first_held] - heads[0], Matrix.Translation(heads[0].tolist())
        turn = root @ Matrix.Rotation(angle, 4, Vector(axis.tolist())) @ root.inverted()
        self._move_to(control, turn @ (_by_channels(control) if name in self._in_chains else control.matrix))

    @property
    def _first_held(self) -> int:
        """The index of the first bone held by a heel or an IK control; that of the last bone if none is known."""
        held = (*self.turned_by, *self.goes_by)
        return min((self.bones.index(bone) for bone in held), default=len(self.bones) - 1)

    @cached_property
    def _in_chains(self) -> set[str]:
        """The controls that are rotated by IK, so that their matrices are results of the IK."""
        chained = (
            each.name
            for bone in self.rig.pose.bones
            for ik in bone.constraints
            if ik.type == "IK" and moves(ik)
            for each in moved_by(bone, ik)
        )
        return set(chained).intersection(self.controls)

    def _move_to(self, control: PoseBone, there: Matrix, *, turns_only: bool = False) -> None:
        """Set a control's unlocked channels to bring it to a matrix in armature space.

        For a control that is rotated by IK, ignores that rotation.
        """
        if control.name not in self._in_chains:
            # Keep the effect of its constraints, such as another parent.
            there = _by_channels(control) @ control.matrix.inverted() @ there
        basis = _by_channels(control, there)
        turn = np.array((control.matrix_basis.inverted() @ basis).to_quaternion())
        way = np.array(basis.translation) - np.array(control.location)
        steps = np.concatenate([way * (not turns_only), rotation_vector_from_quaternion(turn)])
        add_to_channels(control, np.where(free_channels(control), steps, 0.0))


def _by_channels(control: PoseBone, there: Matrix | None = None) -> Matrix:
    """A control's matrix in armature space without its constraints; if `there` is given, the basis matrix for it."""
    bone, above = control.bone, control.parent
    parents = () if above is None else (above.matrix, above.bone.matrix_local)
    held = dict(zip(("parent_matrix", "parent_matrix_local"), parents, strict=False))
    convert: Any = bone.convert_local_to_pose
    found: Matrix = convert(there or control.matrix_basis, bone.matrix_local, **held, invert=there is not None)
    return found


def limbs_kept_on_ik(
    rig: Object, setup: FabrikControlRig, paths: Iterable[str], known: Mapping[str, LimbOnIk], *, baked: bool = False
) -> dict[str, LimbOnIk]:
    """The limbs that are on IK and stay on IK, by switch.

    known: limbs that were placed before. baked: for a bake, in which limbs only stay on IK if they have a pin.
    """
    found = {}
    for path, controls in kept_on_ik(rig, setup, paths, baked=baked):
        rows = [row for row in setup.carriers if row.switch == path]
        limb = LimbOnIk(rig, [row.name for row in rows], controls)
        if path in known and known[path].controls == controls:
            limb = known[path]
        else:
            standing = {row.stands_for: row.name for row in setup.controls if row.name in controls}
            ends = {row.name: row.goes_by for row in rows if row.goes_by in controls}
            below = {each.name for each in rig.data.bones[[*ends][-1]].children_recursive} if ends else set[str]()
            limb.hold(ends, {bone: control for bone, control in standing.items() if bone in below})
        found[path] = limb
    return found


def kept_on_ik(
    rig: Object, setup: FabrikControlRig, paths: Iterable[str], *, baked: bool
) -> Iterator[tuple[str, list[str]]]:
    """The switches of limbs that stay on IK, as in `limbs_kept_on_ik`, with the controls that place them."""
    pins = [each.bone for each in rig_settings(rig).effectors if each.kind == "PIN" and each.enabled]
    pinned = {row.switch for row in setup.carriers if row.name in pins}
    for path in paths:
        controls = [row.name for row in setup.controls if row.limb == path and row.name in rig.pose.bones]
        by_itself = setup.limbs == "AUTO" and (not baked or (path in pinned and not setup.switches[path].stretches))
        wanted = setup.limbs == "IK" or setup.switches[path].only_ik or by_itself
        if wanted and controls and read_switch(rig, path) == setup.switches[path].ik:
            yield path, controls


def place_limbs(update: Update, limbs: Sequence[LimbOnIk], wanted: Sequence[FloatArray]) -> None:
    """Place the controls of limbs in closed form, so that the limbs' bones get matrices (B, 4, 4).

    The limb's end gets there if IK can reach it, and the limb bends in the plane of the wanted pose. The rig determines
    the lengths of the bones. Channels that need no change are not written.
    """
    update()
    pairs = list(zip(limbs, wanted, strict=True))
    for _ in range(_MOST_TURNS):
        # The heels of paws follow the turn of their limb.
        _move_ends(update, pairs)
        for limb, each in pairs:
            if not limb.pole:
                _find_pole(update, limb, each)
        angles = [(limb, each, limb.plane_angle(each)) for limb, each in pairs if limb.pole]
        turning = [(*row, HeldChannels(row[0].rig, [row[0].pole])) for row in angles if row[2]]
        for limb, _, angle, _ in turning:
            limb.rotate(limb.pole, angle)
        if not turning:
            break
        update()
        worse = [held for limb, each, angle, held in turning if abs(limb.plane_angle(each)) >= abs(angle)]
        for held in worse:
            held.restore()
        if worse:
            update()
            break


def _move_ends(update: Update, pairs: Sequence[tuple[LimbOnIk, FloatArray]]) -> None:
    """Move IK controls and heels until they hold the limbs' ends at their (B, 4, 4) matrices, or stop improving."""
    torn, done = set[int](), set[int]()
    for _ in range(_MOST_LEADS):
        off = [(limb, each) for limb, each in pairs if id(limb) not in done and not limb.is_held(each)]
        if not off:
            break
        before = [(HeldChannels(limb.rig, limb.controls), limb.end_error(each)) for limb, each in off]
        for limb, each in off:
            limb.lead(each, as_at_rest=id(limb) in torn)
        update()
        undone = False
        for (limb, each), (held, error) in zip(off, before, strict=True):
            left = limb.end_error(each)
            if id(limb) in torn and left > _GAIN * error:
                done.add(id(limb))
            if left > _NEARER * error and not limb.is_held(each):
                # The limb's end does not follow its control, so place both relative to each other as at rest.
                torn.add(id(limb))
            if left >= error:
                held.restore()
                undone = True
        if undone:
            update()


def _find_pole(update: Update, limb: LimbOnIk, wanted: FloatArray) -> None:
    """Find a limb's pole, or the control that acts as one, by rotating it into the plane of matrices (B, 4, 4)."""
    angle, held_by = limb.plane_angle(wanted), {*limb.goes_by.values(), *limb.turned_by.values()}
    for name in [name for name in limb.controls if name not in held_by] if angle else ():
        held = HeldChannels(limb.rig, [name])
        tried = float(np.copysign(max(abs(angle), _TRIED), angle))
        limb.rotate(name, tried)
        update()
        if (angle - limb.plane_angle(wanted)) / tried > _FOLLOWS:
            limb.pole = name
            break
        held.restore()
        update()
