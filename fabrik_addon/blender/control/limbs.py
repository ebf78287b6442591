"""Limbs on IK: places their controls so that the limb has its solved pose.

The IK control and the pole are placed in closed form: the control moves rigidly with the limb's end, and the pole, or
the control that rotates the limb, about the line from the limb's root to its end. If that is not enough, each channel
of the controls is changed slightly, and Gauss-Newton steps reduce the remaining error.
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
from ..rig.armature import as_array, nearest_rotations
from ..rig.locks import moved_by
from ..rig.pose_writer import HeldChannels, read_switch
from ..settings.control import FabrikControlRig, moves
from ..settings.rig import rig_settings
from .model import add_to_channels, free_channels

# A trial's step, in radians or shares of a limb's length. Errors of single precision are a thousandth of it. It does
# not straighten a limb at 99.7 % of its length.
_TRIED: Final = 0.003
# A limb is in place if its errors (distances, and angles times bone lengths) are below this share of its length.
_PLACED: Final = 4e-5
# A limb with an error above this share of its length is placed from the beginning.
_FAR: Final = 0.03
# A step is poor if it leaves more than this share of the error.
_GOOD_STEP: Final = 0.5
# The number of poor steps after which the effects of channels are measured again. A measurement takes one evaluation
# per channel; each step also updates the known effects, without an evaluation.
_POOR_STEPS: Final = 2
# Effects below this share of a trial step's largest effect are ignored.
NOTHING: Final = 1e-3
# Effects below this share of a trial's step are lost in single precision.
_TELLING: Final = 0.02
# The largest step, in radians and shares of a limb's length, for which the measured effects are valid.
_MOST: Final = 0.8
# A step succeeds if it leaves less than this share of the error. After this many steps without success, the limb is as
# near as possible.
_GAIN: Final = 0.9
_MOST_IDLE: Final = 4
_SHORTER: Final = 0.3
# Weight of the limb's end relative to its other bones, since IK that stretches a limb cannot bring its middle to the
# solved position.
_END: Final = 10.0
# Directions with an effect below this share of a trial's movement are ignored, because two controls may have the same
# effect.
_SAME: Final = 0.01
# A limb has no bend plane if its joints are closer than this share of its length to the line from root to end.
_STRAIGHT: Final = 1e-3
# An IK control holds the limb's end if moving both together leaves at most this share of the error.
_NEARER: Final = 0.1
_MOST_LEADS: Final = 3
# The index of a limb's end bone if the limb bends at one joint.
_ONE_JOINT: Final = 2
# Radians. Half of this is the error of single precision at the smallest bend.
_IN_PLANE: Final = 3e-4
# A control is the pole if rotating it leaves less than this share of the angle.
_FOLLOWS: Final = 0.5
_MOST_TURNS: Final = 3
# A bone belongs to the limb's end if it moves along all axes by at least the first share of its control's movement. If
# it moves by at least the second share (an almost straight leg lags by 6 %), it may rotate by less than the third, per
# length. The bone above a paw lags by 3 % and rotates by 10 %.
_CARRIED: Final = 0.99
_LAGGING: Final = 0.9
_ROTATED: Final = 0.01

# A function that evaluates the rig.
Update: TypeAlias = Callable[[], object]


class LimbOnIk:
    """A limb on IK: its bones, its controls' channels, and their effects.

    Attributes:
        bones, controls: their names.
        columns: for each free channel, the index of its control, and its index among the control's six channels.
        goes_by: by bone name, the control that it follows. end: (B,) whether bones belong to the limb's end.
        heels: by name of a bone above the end, the control that rotates it, such as a paw's heel.
        lengths: (B,) bone lengths. size: length of the limb. units: (6,) the steps of a trial.
        jacobian: (6 B, C) effects of a trial's step of C channels on B bones, in the units of `differences`.
        pole: the control that rotates the limb about the line from its root to its end, "" while unknown.
    """

    def __init__(self, rig: bpy.types.Object, bones: Sequence[str], controls: Sequence[str]) -> None:
        """Read the bones and the channels; does not try any control yet."""
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

    def error(self, differences: FloatArray) -> float:
        """The largest of the differences (6 B,), as a length; those of the limb's end have a larger weight."""
        off = np.abs(differences).reshape(len(self.bones), 6).max(axis=1)
        return float((off * np.where(self.end, _END, 1.0)).max())

    def is_far(self, wanted: FloatArray) -> bool:
        """Whether the Jacobian is unknown, or not valid because the limb is too far from matrices (B, 4, 4)."""
        return (
            not self.jacobian.any() or self.error(self.differences(wanted, self.current_matrices())) > _FAR * self.size
        )

    def step(self, column: int) -> None:
        """Change one channel by a trial's step."""
        place, axis = self.columns[column]
        steps = np.where(np.arange(6) == axis, self.units, 0.0)
        add_to_channels(self.rig.pose.bones[self.controls[place]], steps)

    @property
    def carried(self) -> BoolArray:
        """(N, B) whether bones move as far as each translating control along all axes, like the limb's end."""
        ways, turns = np.linalg.norm(self.jacobian.reshape(len(self.bones), 2, 3, -1), axis=2).swapaxes(0, 1)
        lagging = (ways > _LAGGING * self.units[0]) & (turns < _ROTATED * self.units[0])
        moved = lagging | (ways > _CARRIED * self.units[0])
        places, axes = np.array(self.columns).T
        along = [(places == control) & (axes < 3) for control in range(len(self.controls))]
        return np.array([moved[:, own].sum(axis=1) == 3 for own in along])

    @property
    def known_channels(self) -> list[int]:
        """The channels with a known effect."""
        return np.flatnonzero(np.abs(self.jacobian).max(axis=0) > NOTHING * self.units[0]).tolist()

    @property
    def leader(self) -> str:
        """The IK control, which is the control that the most bones follow."""
        return self.controls[int(np.argmax(self.carried.sum(axis=1)))]

    def hold(self, goes_by: Mapping[str, str]) -> None:
        """Set the control of each held bone: the IK control for the last one, heels for bones above the end.

        This also determines where the limb's end begins.
        """
        self.heels = dict(goes_by)
        self.goes_by = dict([self.heels.popitem()] if goes_by else [])
        for row, name in enumerate(self.bones):
            parents = [each.name for each in self.rig.data.bones[name].parent_recursive]
            self.end[row] = any(bone in (name, *parents) for bone in goes_by)

    def end_error(self, wanted: FloatArray) -> float:
        """The largest difference of bones held by IK controls and heels from their matrices (B, 4, 4), as a length."""
        off = np.abs(self.differences(wanted, self.current_matrices()).reshape(len(self.bones), 6))
        # Only rotations of heels' bones, because their positions depend on lengths that IK changes.
        turned = [off[self.bones.index(bone), 3:] for bone in self.heels]
        return float(np.concatenate([*turned, *(off[self.bones.index(bone)] for bone in self.goes_by), [0.0]]).max())

    def is_held(self, wanted: FloatArray) -> bool:
        """Whether the IK controls hold the limb's end at its matrices among `wanted` (B, 4, 4), armature space."""
        return self.end_error(wanted) <= _PLACED * self.size

    def lead(self, wanted: FloatArray, *, as_at_rest: bool) -> None:
        """Move IK control and heels rigidly with their bones to matrices (B, 4, 4), from the current state or rest."""
        here = self.current_matrices()
        for bone, leader in (self.goes_by | self.heels).items():
            control, rests, row = self.rig.pose.bones[leader], self.rig.data.bones, self.bones.index(bone)
            held = rests[bone].matrix_local if as_at_rest else Matrix(here[row].tolist())
            there = Matrix(wanted[row].tolist()) @ held.inverted()
            there = there @ (rests[leader].matrix_local if as_at_rest else control.matrix)
            self._move_to(control, there)

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
    def is_simple(self) -> bool:
        """Whether IK control, heels and pole determine the whole limb: it bends at only one joint, like an arm."""
        return bool(self.goes_by) and self._first_held <= _ONE_JOINT

    @property
    def _first_held(self) -> int:
        """The index of the first bone held by a heel or an IK control; that of the last bone if none is known."""
        return min((self.bones.index(bone) for bone in (*self.heels, *self.goes_by)), default=len(self.bones) - 1)

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

    def _move_to(self, control: bpy.types.PoseBone, there: Matrix) -> None:
        """Set a control's unlocked channels to bring it to a matrix in armature space.

        For a control that is rotated by IK, ignores that rotation.
        """
        if control.name not in self._in_chains:
            # Keep the effect of its constraints, such as another parent.
            there = _by_channels(control) @ control.matrix.inverted() @ there
        basis = _by_channels(control, there)
        turn = np.array((control.matrix_basis.inverted() @ basis).to_quaternion())
        way = np.array(basis.translation) - np.array(control.location)
        steps = np.concatenate([way, rotation_vector_from_quaternion(turn)])
        add_to_channels(control, np.where(free_channels(control), steps, 0.0))

    def move(self, off: FloatArray, share: float) -> FloatArray:
        """Take a share of a Gauss-Newton step for differences `off` (6 B,); returns it as (C,) trial steps."""
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
        """Update the Jacobian (Broyden 1965) after `steps` (C,) of the channels caused a `change` (6 B,)."""
        square = float(steps @ steps)
        if square > _TELLING**2:
            self.jacobian += np.outer(change - self.jacobian @ steps, steps) / square

    def _least_steps(self, off: FloatArray) -> FloatArray:
        """(C,) least-norm step, in units of trial steps, that removes differences (6 B,), the limb's end first."""
        end, known_channels = np.repeat(self.end, 6), self.known_channels
        jacobian, least = self.jacobian[:, known_channels], _SAME * self.units[0]
        steps, others = _solved(jacobian[end], off[end], least)
        left = off[~end] - jacobian[~end] @ steps
        found = np.zeros(len(self.columns))
        found[known_channels] = steps + others @ _solved(jacobian[~end] @ others, left, least)[0]
        return found


def _by_channels(control: bpy.types.PoseBone, there: Matrix | None = None) -> Matrix:
    """A control's matrix in armature space without its constraints; if `there` is given, the basis matrix for it."""
    bone, above = control.bone, control.parent
    parents = () if above is None else (above.matrix, above.bone.matrix_local)
    held = dict(zip(("parent_matrix", "parent_matrix_local"), parents, strict=False))
    convert: Any = bone.convert_local_to_pose
    found: Matrix = convert(there or control.matrix_basis, bone.matrix_local, **held, invert=there is not None)
    return found


def _solved(matrix: FloatArray, values: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """(C,) the least-norm solution for `values` (R,), and (C, N) the null space (singular values below `least`)."""
    left, sizes, right = np.linalg.svd(matrix)
    count = np.count_nonzero(sizes > least)
    return right[:count].T @ ((left[:, :count].T @ values) / sizes[:count]), right[count:].T


def limbs_kept_on_ik(
    rig: bpy.types.Object,
    kept: FabrikControlRig,
    paths: Iterable[str],
    known: Mapping[str, LimbOnIk],
    *,
    baked: bool = False,
) -> dict[str, LimbOnIk]:
    """The limbs that are on IK and stay on IK, by switch.

    known: limbs that were placed before. baked: for a bake, in which limbs only stay on IK if they have a pin.
    """
    found = {}
    for path, controls in kept_on_ik(rig, kept, paths, baked=baked):
        rows = [row for row in kept.carriers if row.switch == path]
        limb = LimbOnIk(rig, [row.name for row in rows], controls)
        if path in known and known[path].columns == limb.columns:
            limb = known[path]
        else:
            limb.hold({row.name: row.goes_by for row in rows if row.goes_by in controls})
        found[path] = limb
    return found


def kept_on_ik(
    rig: bpy.types.Object, kept: FabrikControlRig, paths: Iterable[str], *, baked: bool
) -> Iterator[tuple[str, list[str]]]:
    """The switches of limbs that stay on IK, as in `limbs_kept_on_ik`, with the controls that place them."""
    pins = [each.bone for each in rig_settings(rig).effectors if each.kind == "PIN" and each.enabled]
    pinned = {row.switch for row in kept.carriers if row.name in pins}
    for path in paths:
        controls = [row.name for row in kept.controls if row.limb == path and row.name in rig.pose.bones]
        by_itself = kept.limbs == "AUTO" and (not baked or (path in pinned and not kept.switches[path].stretches))
        wanted = kept.limbs == "IK" or kept.switches[path].only_ik or by_itself
        if wanted and controls and read_switch(rig, path) == kept.switches[path].ik:
            yield path, controls


def place_limbs_directly(update: Update, limbs: Sequence[LimbOnIk], wanted: Sequence[FloatArray]) -> None:
    """Place the controls of limbs in closed form, so that the limbs' bones get matrices (B, 4, 4).

    The limb's end gets there if IK can reach it, and the limb bends in the plane of the wanted pose. The rig determines
    the lengths of the bones. Channels that need no change are not written.
    """
    update()
    pairs = list(zip(limbs, wanted, strict=True))
    _move_ends(update, pairs)
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
    angle = limb.plane_angle(wanted)
    for name in [name for name in limb.controls if name not in (limb.goes_by | limb.heels).values()] if angle else ():
        held = HeldChannels(limb.rig, [name])
        limb.rotate(name, angle)
        update()
        if abs(limb.plane_angle(wanted)) < _FOLLOWS * abs(angle):
            limb.pole = name
            break
        held.restore()
        update()


def place_limbs(
    update: Update, limbs: Sequence[LimbOnIk], wanted: Sequence[FloatArray], most: int | None = None
) -> None:
    """Place several limbs together, as near as possible to matrices (B, 4, 4) of their bones.

    Limbs that were placed before continue from there, with their Jacobian. update: evaluates the rig. most: maximum
    number of Gauss-Newton steps; None: until the error stops decreasing.
    """
    update()
    far = [(limb, each) for limb, each in zip(limbs, wanted, strict=True) if limb.is_far(each)]
    if far:
        place_limbs_directly(update, [limb for limb, _ in far], [each for _, each in far])
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
    """Check the results of the last steps; returns the searches that continue."""
    for search in searches:
        search.look()
    return [search for search in searches if search.can_improve]


class _Search:
    """The search for one limb's placement, with the best state and the step length.

    Attributes:
        is_poor: whether the last steps improved little, so that channels are tried again.
        went_back: whether the last step was undone. can_improve: whether another step may help.
    """

    def __init__(self, limb: LimbOnIk, wanted: FloatArray) -> None:
        """Start at the limb's current pose."""
        self.limb, self._wanted = limb, wanted
        self._held, self._best, self._left = HeldChannels(limb.rig, limb.controls), np.inf, _MOST_IDLE
        self._off, self._steps, self._share = np.zeros(6 * len(limb.bones)), np.zeros(len(limb.columns)), 1.0
        self.is_poor, self.went_back, self.can_improve = False, False, True
        self._poor_steps, self._tries = 0, 0

    def look(self) -> None:
        """Check the result of the last step. If it did not help, undo it and shorten the next one."""
        off = self.limb.differences(self._wanted, self.limb.current_matrices())
        self.limb.learn(self._steps, self._off - off)
        size = self.limb.error(off) / self.limb.size
        self._poor_steps = self._poor_steps + 1 if size > _GOOD_STEP * self._best else 0
        self.is_poor = not self.limb.jacobian.any() or self._poor_steps >= _POOR_STEPS
        self._left = _MOST_IDLE if size < _GAIN * self._best else self._left - 1
        self.went_back = size >= self._best
        if self.went_back:
            self._share *= _SHORTER
            self._held.restore()
        else:
            self._held, self._best, self._off, self._share = (
                HeldChannels(self.limb.rig, self.limb.controls),
                size,
                off,
                1.0,
            )
        self.can_improve = self._left > 0 and self._best > _PLACED

    def columns(self) -> list[int]:
        """The channels to try again: first the pole's, then all with a known effect, finally all."""
        known_channels, leader = self.limb.known_channels, self.limb.controls.index(self.limb.leader)
        aside = [column for column in known_channels if self.limb.columns[column][0] != leader]
        every = [*range(len(self.limb.columns))]
        self._tries, self._poor_steps = self._tries + 1, 0
        return (aside or known_channels or every, known_channels or every, every)[min(self._tries, 3) - 1]

    def move(self) -> None:
        """Take the next step."""
        self._steps = self.limb.move(self._off, self._share)


def try_channels(update: Update, limbs: Sequence[LimbOnIk], columns: Sequence[Sequence[int]] | None = None) -> None:
    """Measure the effects of the limbs' control channels on their bones, one channel of each limb at a time.

    columns: for each limb the channels to try; None for all. The others keep their known effects.
    """
    held = [HeldChannels(limb.rig, limb.controls) for limb in limbs]
    here = [limb.current_matrices() for limb in limbs]
    asked = [range(len(limb.columns)) for limb in limbs] if columns is None else columns
    for turn in zip_longest(*asked):
        trying = [(row, column) for row, column in enumerate(turn) if column is not None]
        for row, column in trying:
            limbs[row].step(column)
        update()
        for row, column in trying:
            limbs[row].jacobian[:, column] = limbs[row].differences(limbs[row].current_matrices(), here[row])
            held[row].restore()
    for limb in limbs:
        # Ignore channels that detach a limb from its control.
        limb.jacobian[:, np.abs(limb.jacobian[:3]).max(axis=0) > _SAME * limb.units[0]] = 0.0
