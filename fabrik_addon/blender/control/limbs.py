"""Limbs on IK: placing their controls so that the limb is as it was solved.

The IK control and the pole are placed in closed form: the control goes to the limb's end as rigidly as it holds it, and
the pole, or the control that rotates the limb, about the line from the limb's root to its end. Where that is not enough
each channel of the controls is changed by a little, and Gauss-Newton steps reduce what is left.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, Final, TypeAlias

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ...core.arrays import BoolArray, FloatArray
from ...core.rotations import quaternion_from_matrix, rotation_vector_from_quaternion
from ..rig.armature import nearest_rotations
from ..rig.locks import moved_by
from ..rig.pose_keeper import read_switch
from ..rig.pose_writer import HeldChannels
from ..rig.spaces import as_array
from ..settings.control import FabrikControlRig, moves
from ..settings.rig import rig_settings
from .channels import add_to_channels, free_channels

# A trial's step, radians or shares of a limb's length: single precision leaves a thousandth of it for telling what
# follows, and a limb that is 99.7 % of its length long is not yet torn straight.
_TRIED: Final = 0.003
# Shares of a limb's length: a limb that is off by less, in place or by turn times length of the bone, stands right.
_PLACED: Final = 4e-5
# A share of a limb's length: where it is farther off it is placed as if it had not been placed before.
_FAR: Final = 0.03
# Trying anew is worth its evaluations where a step by what is known leaves more than this of the error.
_GOOD_STEP: Final = 0.5
# Each step is learned from, so that the second is the better for it; trying takes as many evaluations as channels.
_POOR_STEPS: Final = 2
# A share of what a trial's step does at most: less is nothing.
_NOTHING: Final = 1e-3
# A share of a trial's step: what less does is lost among the roundings of single precision.
_TELLING: Final = 0.02
# Radians, and shares of a limb's length: farther at once goes beyond what was tried nearby.
_MOST: Final = 0.8
# A step gains where it leaves less of the error than this; after so many that do not, a limb is as near as it comes.
_GAIN: Final = 0.9
_MOST_IDLE: Final = 4
_SHORTER: Final = 0.3
# The limb's end counts so many times as much: IK that stretches a limb can't bring its middle where it was solved.
_END: Final = 10.0
# A share of a trial's way: directions in which the channels do less are not taken, as two controls may do the same.
_SAME: Final = 0.01
# A share of a limb's length: a limb whose joints are nearer to the line from its root to its end bends in no plane.
_STRAIGHT: Final = 1e-3
# Where the IK control holds the limb, moving it with the end leaves at most this share of the error.
_NEARER: Final = 0.1
_MOST_LEADS: Final = 3
# The place of a limb's end in it where that bends at one joint.
_ONE_JOINT: Final = 2
# Radians: at the least bend that counts, single precision leaves half of this.
_IN_PLANE: Final = 3e-4
# A pole is the right one if rotating it leaves less than this share of the angle.
_FOLLOWS: Final = 0.5
_MOST_TURNS: Final = 3
# Shares of a control's way: bones that go with one so far along all axes are the limb's end, and so are those that it
# does not rotate (by less times their length), though a leg that is all but straight lags by 6 %. The bone above a paw
# lags by 3 % and is rotated by 10 %.
_CARRIED: Final = 0.99
_LAGGING: Final = 0.9
_ROTATED: Final = 0.01

# Evaluates the rig.
Update: TypeAlias = Callable[[], object]


class LimbOnIk:
    """One limb that is on IK: its bones, its controls' channels, and what those do.

    Attributes:
        bones, controls: their names.
        columns: for each free channel its control's place among these, and which of the control's six it is.
        goes_by: by name of a bone the control that it goes with. end: (B,) which bones are the limb's end.
        heels: by name of a bone above the end the control that rotates it, as a paw's heel does.
        lengths: (B,) the bones'. size: the limb's. units: (6,) the steps of a trial.
        jacobian: (6 B, C) what a trial's step of each of C channels does to B bones, as `differences`.
        pole: the control that rotates the limb about the line from its root to its end, "" while it is not known.
    """

    def __init__(self, rig: bpy.types.Object, bones: Sequence[str], controls: Sequence[str]) -> None:
        """Nothing is tried yet."""
        self.rig, self.bones, self.controls = rig, list(bones), list(controls)
        self.lengths = np.array([rig.data.bones[name].length for name in bones])
        self.size = float(self.lengths.sum())
        self.units = _TRIED * np.array([self.size, self.size, self.size, 1.0, 1.0, 1.0])
        free = [free_channels(rig.pose.bones[name]) for name in controls]
        self.columns = [(place, int(axis)) for place, each in enumerate(free) for axis in np.flatnonzero(each)]
        self.goes_by: dict[str, str] = {}
        self.heels: dict[str, str] = {}
        self.end = np.zeros(len(self.bones), dtype=bool)
        self.jacobian = np.zeros((6 * len(self.bones), len(self.columns)))
        self.pole = ""

    def stands(self) -> FloatArray:
        """(B, 4, 4) how the bones stand, without scale."""
        matrices = np.array([as_array(self.rig.pose.bones[name].matrix) for name in self.bones])
        matrices[:, :3, :3] = nearest_rotations(matrices[:, :3, :3])
        return matrices

    def differences(self, there: FloatArray, here: FloatArray) -> FloatArray:
        """(6 B,) how far (B, 4, 4) matrices are from others, in lengths: places, and turns by the bones' lengths."""
        turns = quaternion_from_matrix(there[:, :3, :3] @ np.swapaxes(here[:, :3, :3], 1, 2))
        vectors = rotation_vector_from_quaternion(turns) * self.lengths[:, None]
        return np.concatenate([there[:, :3, 3] - here[:, :3, 3], vectors], axis=1).ravel()

    def error(self, differences: FloatArray) -> float:
        """The most of (6 B,) differences, as a length; the end's count more."""
        off = np.abs(differences).reshape(len(self.bones), 6).max(axis=1)
        return float((off * np.where(self.end, _END, 1.0)).max())

    def is_far(self, wanted: FloatArray) -> bool:
        """Whether nothing is known of it, or it is too far from (B, 4, 4) matrices for what is."""
        return not self.jacobian.any() or self.error(self.differences(wanted, self.stands())) > _FAR * self.size

    def step(self, column: int) -> None:
        """Change one channel by a trial's step."""
        place, axis = self.columns[column]
        steps = np.where(np.arange(6) == axis, self.units, 0.0)
        add_to_channels(self.rig.pose.bones[self.controls[place]], steps)

    @property
    def carried(self) -> BoolArray:
        """(N, B) which bones go as far as each control does that is moved, along all axes: the limb's end."""
        ways, turns = np.linalg.norm(self.jacobian.reshape(len(self.bones), 2, 3, -1), axis=2).swapaxes(0, 1)
        lagging = (ways > _LAGGING * self.units[0]) & (turns < _ROTATED * self.units[0])
        moved = lagging | (ways > _CARRIED * self.units[0])
        places, axes = np.array(self.columns).T
        along = [(places == control) & (axes < 3) for control in range(len(self.controls))]
        return np.array([moved[:, own].sum(axis=1) == 3 for own in along])

    @property
    def telling(self) -> list[int]:
        """The channels that are known to do something."""
        return np.flatnonzero(np.abs(self.jacobian).max(axis=0) > _NOTHING * self.units[0]).tolist()

    @property
    def leader(self) -> str:
        """The first of the controls that carry most bones: the IK control."""
        return self.controls[int(np.argmax(self.carried.sum(axis=1)))]

    def hold(self, goes_by: Mapping[str, str]) -> None:
        """Say which bone goes by the IK control, the last one; with that from which bone on the limb is its end.

        Those above it go by heels.
        """
        self.heels = dict(goes_by)
        self.goes_by = dict([self.heels.popitem()] if goes_by else [])
        for row, name in enumerate(self.bones):
            parents = [each.name for each in self.rig.data.bones[name].parent_recursive]
            self.end[row] = any(bone in (name, *parents) for bone in goes_by)

    def end_error(self, wanted: FloatArray) -> float:
        """How far the bones that IK controls and heels hold are from their (B, 4, 4) matrices, as a length."""
        off = np.abs(self.differences(wanted, self.stands()).reshape(len(self.bones), 6))
        # Where a heel's bone is, is up to how long IK makes it.
        turned = [off[self.bones.index(bone), 3:] for bone in self.heels]
        return float(np.concatenate([*turned, *(off[self.bones.index(bone)] for bone in self.goes_by), [0.0]]).max())

    def is_held(self, wanted: FloatArray) -> bool:
        """Whether the IK controls hold the limb's end where it is to be."""
        return self.end_error(wanted) <= _PLACED * self.size

    def lead(self, wanted: FloatArray, *, as_at_rest: bool) -> None:
        """Move IK control and heel rigidly with their bones to (B, 4, 4) matrices, from how all are now, or at rest."""
        here = self.stands()
        for bone, leader in (self.goes_by | self.heels).items():
            control, rests, row = self.rig.pose.bones[leader], self.rig.data.bones, self.bones.index(bone)
            held = rests[bone].matrix_local if as_at_rest else Matrix(here[row].tolist())
            there = Matrix(wanted[row].tolist()) @ held.inverted()
            there = there @ (rests[leader].matrix_local if as_at_rest else control.matrix)
            self._move_to(control, there)

    def plane_angle(self, wanted: FloatArray) -> float:
        """Radians about the line from root to end from the plane in which the limb bends to the one of (B, 4, 4).

        Zero where the limb is straight, or the angle is too small to count.
        """
        sides = []
        for matrices in (self.stands(), wanted):
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
        """Rotate a control about the line from the limb's root to its end: an IK rotates with its pole, or its root."""
        heads, control = self.stands()[:, :3, 3], self.rig.pose.bones[name]
        axis, root = heads[self._first_held] - heads[0], Matrix.Translation(heads[0].tolist())
        turn = root @ Matrix.Rotation(angle, 4, Vector(axis.tolist())) @ root.inverted()
        self._move_to(control, turn @ (_by_channels(control) if name in self._in_chains else control.matrix))

    @property
    def is_simple(self) -> bool:
        """Whether IK control, heel and pole say where all of it is: above them it bends at one joint, as arms do."""
        return bool(self.goes_by) and self._first_held <= _ONE_JOINT

    @property
    def _first_held(self) -> int:
        """The place of the first bone that a heel or an IK control holds; the last one's where none is known."""
        return min((self.bones.index(bone) for bone in (*self.heels, *self.goes_by)), default=len(self.bones) - 1)

    @cached_property
    def _in_chains(self) -> set[str]:
        """Those of the controls that an IK rotates itself, so that their matrices are what it makes of them."""
        chained = (
            each.name
            for bone in self.rig.pose.bones
            for ik in bone.constraints
            if ik.type == "IK" and moves(ik)
            for each in moved_by(bone, ik)
        )
        return set(chained).intersection(self.controls)

    def _move_to(self, control: bpy.types.PoseBone, there: Matrix) -> None:
        """Have a control's channels, as far as its locks let them, bring it to a matrix in armature space.

        One that an IK rotates itself is brought there but for that.
        """
        if control.name not in self._in_chains:
            # What its constraints add, such as another parent, stays.
            there = _by_channels(control) @ control.matrix.inverted() @ there
        basis = _by_channels(control, there)
        turn = np.array((control.matrix_basis.inverted() @ basis).to_quaternion())
        way = np.array(basis.translation) - np.array(control.location)
        steps = np.concatenate([way, rotation_vector_from_quaternion(turn)])
        add_to_channels(control, np.where(free_channels(control), steps, 0.0))

    def move(self, off: FloatArray, share: float) -> FloatArray:
        """Take a share of a Gauss-Newton step from (6 B,) differences on; (C,) steps as shares of a trial's."""
        units = self.units[[axis for _, axis in self.columns]]
        found = self._least_steps(off) * units * share
        steps = np.zeros((len(self.controls), 6))
        for (place, axis), each in zip(self.columns, found, strict=True):
            steps[place, axis] = each
        for part, most in ((slice(3), _MOST * self.size), (slice(3, 6), _MOST)):
            steps[:, part] *= most / np.maximum(np.linalg.norm(steps[:, part], axis=1, keepdims=True), most)
        for name, each in zip(self.controls, steps, strict=True):
            add_to_channels(self.rig.pose.bones[name], each)
        return np.array([steps[place, axis] for place, axis in self.columns]) / units

    def learn(self, steps: FloatArray, change: FloatArray) -> None:
        """Know of (C,) steps of the channels that they changed the differences by (6 B,): Broyden's update."""
        square = float(steps @ steps)
        if square > _TELLING**2:
            self.jacobian += np.outer(change - self.jacobian @ steps, steps) / square

    def _least_steps(self, off: FloatArray) -> FloatArray:
        """(C,) steps of the channels, as shares of a trial's, that mend (6 B,): the limb's end first, then the rest."""
        end, telling = np.repeat(self.end, 6), self.telling
        jacobian, least = self.jacobian[:, telling], _SAME * self.units[0]
        steps, others = _solved(jacobian[end], off[end], least)
        left = off[~end] - jacobian[~end] @ steps
        found = np.zeros(len(self.columns))
        found[telling] = steps + others @ _solved(jacobian[~end] @ others, left, least)[0]
        return found


def _by_channels(control: bpy.types.PoseBone, there: Matrix | None = None) -> Matrix:
    """A control's matrix in armature space without its constraints; or the basis that gives another such matrix."""
    bone, above = control.bone, control.parent
    parents = () if above is None else (above.matrix, above.bone.matrix_local)
    held = dict(zip(("parent_matrix", "parent_matrix_local"), parents, strict=False))
    convert: Any = bone.convert_local_to_pose
    found: Matrix = convert(there or control.matrix_basis, bone.matrix_local, **held, invert=there is not None)
    return found


def _solved(matrix: FloatArray, values: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """(C,) the least that brings (R, C) nearest to (R,) values, and (C, N) what does nothing: singular values below."""
    left, sizes, right = np.linalg.svd(matrix)
    count = np.count_nonzero(sizes > least)
    return right[:count].T @ ((left[:, :count].T @ values) / sizes[:count]), right[count:].T


def limbs_that_stay(
    rig: bpy.types.Object,
    kept: FabrikControlRig,
    paths: Iterable[str],
    known: Mapping[str, LimbOnIk],
    *,
    baked: bool = False,
) -> dict[str, LimbOnIk]:
    """Of some limbs, by their switches, those that are on IK and stay on it.

    known: those that were placed before. baked: over frames, limbs stay on IK only if they have a pin.
    """
    found = {}
    for path, controls in staying(rig, kept, paths, baked=baked):
        rows = [row for row in kept.carriers if row.switch == path]
        limb = LimbOnIk(rig, [row.name for row in rows], controls)
        if path in known and known[path].columns == limb.columns:
            limb = known[path]
        else:
            limb.hold({row.name: row.goes_by for row in rows if row.goes_by in controls})
        found[path] = limb
    return found


def staying(
    rig: bpy.types.Object, kept: FabrikControlRig, paths: Iterable[str], *, baked: bool
) -> Iterator[tuple[str, list[str]]]:
    """As `limbs_that_stay`, their switches and the controls that place them."""
    pins = [each.bone for each in rig_settings(rig).effectors if each.kind == "PIN" and each.enabled]
    pinned = {row.switch for row in kept.carriers if row.name in pins}
    for path in paths:
        controls = [row.name for row in kept.controls if row.limb == path and row.name in rig.pose.bones]
        by_itself = kept.limbs == "AUTO" and (not baked or (path in pinned and not kept.switches[path].stretches))
        wanted = kept.limbs == "IK" or kept.switches[path].only_ik or by_itself
        if wanted and controls and read_switch(rig, path) == kept.switches[path].ik:
            yield path, controls


def bring_limbs(update: Update, limbs: Sequence[LimbOnIk], wanted: Sequence[FloatArray]) -> None:
    """Place the controls of limbs in closed form, for their bones to be at (B, 4, 4) matrices each.

    The limb's end comes there as far as its IK reaches, and its joints in the plane of those that are wanted; how long
    its IK makes the bones is the rig's affair. Channels that have nothing to change are not written.
    """
    update()
    pairs = list(zip(limbs, wanted, strict=True))
    torn: set[int] = set()
    for _ in range(_MOST_LEADS):
        off = [(limb, each) for limb, each in pairs if not limb.is_held(each)]
        before = [(HeldChannels(limb.rig, limb.controls), limb.end_error(each)) for limb, each in off]
        for limb, each in off:
            limb.lead(each, as_at_rest=id(limb) in torn)
        if off:
            update()
        for (limb, each), (held, error) in zip(off, before, strict=True):
            left = limb.end_error(each)
            if left > _NEARER * error and not limb.is_held(each):
                # Its control is not where it holds the limb: it has to go back to where that is at rest.
                torn.add(id(limb))
            if left >= error:
                held.put_back()
        if torn:
            update()
    for limb, each in pairs:
        if not limb.pole:
            _find_pole(update, limb, each)
    for _ in range(_MOST_TURNS):
        angles = [(limb, each, limb.plane_angle(each)) for limb, each in pairs if limb.pole]
        turning = [(*row, HeldChannels(row[0].rig, [row[0].pole])) for row in angles if row[2]]
        for limb, _, angle, _ in turning:
            limb.rotate(limb.pole, angle)
        if not turning:
            break
        update()
        worse = [held for limb, each, angle, held in turning if abs(limb.plane_angle(each)) >= abs(angle)]
        for held in worse:
            held.put_back()
        if worse:
            update()
            break


def _find_pole(update: Update, limb: LimbOnIk, wanted: FloatArray) -> None:
    """Find the pole of a limb, or what takes its place, by rotating it into the plane of (B, 4, 4) matrices."""
    angle = limb.plane_angle(wanted)
    for name in [name for name in limb.controls if name not in (limb.goes_by | limb.heels).values()] if angle else ():
        held = HeldChannels(limb.rig, [name])
        limb.rotate(name, angle)
        update()
        if abs(limb.plane_angle(wanted)) < _FOLLOWS * abs(angle):
            limb.pole = name
            break
        held.put_back()
        update()


def place_limbs(
    update: Update, limbs: Sequence[LimbOnIk], wanted: Sequence[FloatArray], most: int | None = None
) -> None:
    """Place limbs, all at once, where their bones stand at (B, 4, 4) matrices each; as near as they can come.

    What was placed before goes on from there, by what is known of it. update: evaluates the rig. most: Gauss-Newton
    steps; None: until they gain nothing.
    """
    update()
    far = [(limb, each) for limb, each in zip(limbs, wanted, strict=True) if limb.is_far(each)]
    if far:
        bring_limbs(update, [limb for limb, _ in far], [each for _, each in far])
    searches = [_Search(limb, each) for limb, each in zip(limbs, wanted, strict=True)]
    moving, steps = _moving(searches), 0
    while moving and (most is None or steps < most):
        steps += 1
        poor = [search for search in moving if search.is_poor]
        if any(search.went_back for search in poor):
            update()
        try_channels(update, [search.limb for search in poor], [search.columns() for search in poor])
        for search in moving:
            search.move()
        update()
        moving = _moving(moving)
    if any(search.went_back for search in searches):
        update()


def _moving(searches: Sequence["_Search"]) -> list["_Search"]:
    """The searches that go on, once all have looked."""
    for search in searches:
        search.look()
    return [search for search in searches if search.goes_on]


class _Search:
    """The way of one limb to where its bones are wanted: what was best, and how far steps go.

    Attributes:
        is_poor: whether the last steps gained little, and channels are to be tried anew.
        went_back: whether the last step was taken back. goes_on: whether another step may gain.
    """

    def __init__(self, limb: LimbOnIk, wanted: FloatArray) -> None:
        """It begins where the limb is."""
        self.limb, self._wanted = limb, wanted
        self._held, self._best, self._left = HeldChannels(limb.rig, limb.controls), np.inf, _MOST_IDLE
        self._off, self._steps, self._share = np.zeros(6 * len(limb.bones)), np.zeros(len(limb.columns)), 1.0
        self.is_poor, self.went_back, self.goes_on = False, False, True
        self._poor_steps, self._tries = 0, 0

    def look(self) -> None:
        """See what the last step has done; one that was none the better is taken back, and the next goes less far."""
        off = self.limb.differences(self._wanted, self.limb.stands())
        self.limb.learn(self._steps, self._off - off)
        size = self.limb.error(off) / self.limb.size
        self._poor_steps = self._poor_steps + 1 if size > _GOOD_STEP * self._best else 0
        self.is_poor = not self.limb.jacobian.any() or self._poor_steps >= _POOR_STEPS
        self._left = _MOST_IDLE if size < _GAIN * self._best else self._left - 1
        self.went_back = size >= self._best
        if self.went_back:
            self._share *= _SHORTER
            self._held.put_back()
        else:
            self._held, self._best, self._off, self._share = (
                HeldChannels(self.limb.rig, self.limb.controls),
                size,
                off,
                1.0,
            )
        self.goes_on = self._left > 0 and self._best > _PLACED

    def columns(self) -> list[int]:
        """The channels to be tried anew: a pole's, next all that are known to do something, at last all."""
        telling, leader = self.limb.telling, self.limb.controls.index(self.limb.leader)
        aside = [column for column in telling if self.limb.columns[column][0] != leader]
        every = [*range(len(self.limb.columns))]
        self._tries, self._poor_steps = self._tries + 1, 0
        return (aside or telling or every, telling or every, every)[min(self._tries, 3) - 1]

    def move(self) -> None:
        """Take the next step."""
        self._steps = self.limb.move(self._off, self._share)


def try_channels(update: Update, limbs: Sequence[LimbOnIk], columns: Sequence[Sequence[int]] | None = None) -> None:
    """Find what each channel of some limbs' controls does to their bones, one of each limb at once.

    columns: by limb the channels that are tried; what is known of others stays. All of them when None.
    """
    held = [HeldChannels(limb.rig, limb.controls) for limb in limbs]
    here = [limb.stands() for limb in limbs]
    asked = [range(len(limb.columns)) for limb in limbs] if columns is None else columns
    for turn in zip_longest(*asked):
        trying = [(row, column) for row, column in enumerate(turn) if column is not None]
        for row, column in trying:
            limbs[row].step(column)
        update()
        for row, column in trying:
            limbs[row].jacobian[:, column] = limbs[row].differences(limbs[row].stands(), here[row])
            held[row].put_back()
    for limb in limbs:
        # What tears a limb off is not for placing it.
        limb.jacobian[:, np.abs(limb.jacobian[:3]).max(axis=0) > _SAME * limb.units[0]] = 0.0
