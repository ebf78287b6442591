"""Rotates each control slightly to find the body's bones, their controls, and the leaders of the controls."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from bpy.types import Context, Object

from ...core.arrays import BoolArray, FloatArray, IntArray
from ...core.rotations import rotation_vector_from_matrix
from ..rig.armature import matrices, unscaled
from ..rig.pose_writer import HeldChannels, constrained_bones
from .switches import batches
from .writer import add_to_channels, free_channels, is_additive

# Radians. Matrices are in single precision, so rotations can be compared to a thousandth of this.
_TURN: Final = 0.02
# Two rotations are equal if they differ by less than this fraction. A bone is in place if it moves by less than this
# fraction of a reference movement: that of a point whose distance from the control is a tenth of the rig's size.
_SAME: Final = 0.01
# Rotations below this fraction of the control's rotation are ignored.
_TELLING: Final = 0.1
# An oblique axis, so that all three rotation channels of a bone are tested.
TRIED_AXIS: Final = (0.48, 0.6, 0.64)


@dataclass(frozen=True, eq=False)
class Trials:
    """The N bones of an armature, and their movements when C controls were rotated, one at a time.

    Attributes:
        bones, controls: their names.
        parents, lengths: (N,) indices of the bones' parents or -1, and their lengths.
        deform: (N,) whether they deform the mesh; if none does, all count.
        shaped: the bones with a custom shape.
        rest: (N, 4, 4) matrices of the bones before the trials, in armature space, without scale.
        turns: (C, 3) rotation vectors of the controls in armature space. turned: (C, N, 3) of the bones.
        moved: (C, N, 3) movements of the bones' heads.
    """

    bones: list[str]
    controls: list[str]
    parents: IntArray
    lengths: FloatArray
    deform: BoolArray
    shaped: frozenset[str]
    rest: FloatArray
    turns: FloatArray
    turned: FloatArray
    moved: FloatArray

    @cached_property
    def full(self) -> BoolArray:
        """(C, N) whether each of N bones had the same rotation as each of C controls."""
        sizes = np.linalg.norm(self.turns, axis=-1)[:, None]
        alike = np.linalg.norm(self.turned - self.turns[:, None], axis=-1) < _SAME * sizes
        return np.asarray(alike & (sizes > _TELLING * _TURN))

    @cached_property
    def follows(self) -> BoolArray:
        """(C, N) whether each of N bones rotated like each of C controls, apart from twist about the bone's Y."""
        along = self.rest[:, :3, 1]
        missing, whole = (
            np.asarray(turns - np.sum(turns * along, axis=-1, keepdims=True) * along)
            for turns in (self.turned - self.turns[:, None], self.turns[:, None])
        )
        sizes = np.linalg.norm(whole, axis=-1)
        alike = np.linalg.norm(missing, axis=-1) < _SAME * sizes
        return np.asarray(self.full | (alike & (sizes > _TELLING * _TURN)))

    @cached_property
    def shares(self) -> FloatArray:
        """(C, N) the rotation of each bone as a fraction of the control's; NaN if it was about another axis."""
        squares = np.maximum(np.einsum("ci,ci->c", self.turns, self.turns), np.finfo(np.float64).tiny)[:, None]
        share = np.einsum("cni,ci->cn", self.turned, self.turns) / squares
        rest = self.turned - share[:, :, None] * self.turns[:, None]
        return np.where(np.linalg.norm(rest, axis=-1) < _SAME * np.sqrt(squares), share, np.nan)

    @cached_property
    def carried(self) -> BoolArray:
        """(C, N) whether a bone's head moved as if rigidly rotated about the control's head."""
        rows = [self.bones.index(name) for name in self.controls]
        arms = self.rest[None, :, :3, 3] - self.rest[rows, None, :3, 3]
        wanted = np.cross(self.turns[:, None], arms)
        # The rotation is not infinitesimal, so allow for the deviation of the arc from its tangent.
        loose = (
            _TURN * np.linalg.norm(wanted, axis=-1) + _SAME * _TURN * 0.1 * np.ptp(self.rest[:, :3, 3], axis=0).max()
        )
        return np.asarray(np.linalg.norm(self.moved - wanted, axis=-1) < loose)

    def above(self, place: int) -> list[int]:
        """The indices of the bones above the bone at an index, the nearest first."""
        found = []
        while (place := int(self.parents[place])) >= 0:
            found.append(place)
        return found


def try_controls(context: Context, rig: Object, controls: Sequence[str], after: Mapping[str, set[str]]) -> Trials:
    """Rotate each control slightly from the current pose, and put it back.

    Controls that constraints move have no effect. after: for each bone, the bones that may follow it.
    """
    bones = list(rig.pose.bones.keys())
    rest = _matrices(context, rig)
    shape = (len(controls), len(bones), 3)
    turns, turned, moved = np.zeros((len(controls), 3)), np.zeros(shape), np.zeros(shape)
    owned = constrained_bones(rig)
    free = [name for name in controls if name not in owned or is_additive(rig.pose.bones[name])]
    for batch in batches(free, after):
        before = HeldChannels(rig, batch)
        for name in batch:
            bone = rig.pose.bones[name]
            turn = np.where(free_channels(bone), (0.0, 0.0, 0.0, *TRIED_AXIS), 0.0)
            add_to_channels(bone, _TURN * turn / np.linalg.norm(turn))
        posed = _matrices(context, rig)
        before.restore()
        vectors = rotation_vector_from_matrix(posed[:, :3, :3] @ np.swapaxes(rest[:, :3, :3], 1, 2))
        for name in batch:
            row, column = controls.index(name), bones.index(name)
            follows = np.array([bone in after[name] for bone in bones])
            turns[row] = vectors[column]
            turned[row, follows], moved[row, follows] = vectors[follows], (posed - rest)[follows, :3, 3]
    context.view_layer.update()
    every = list(rig.pose.bones)
    parents = np.array([bones.index(bone.parent.name) if bone.parent else -1 for bone in every])
    lengths, deform = np.array([bone.bone.length for bone in every]), np.array([bone.bone.use_deform for bone in every])
    shaped = frozenset(bone.name for bone in every if bone.custom_shape)
    deform = deform if deform.any() else np.ones_like(deform)
    return Trials(bones, list(controls), parents, lengths, deform, shaped, rest, turns, turned, moved)


def _matrices(context: Context, rig: Object) -> FloatArray:
    """(N, 4, 4) current matrices of the bones in armature space, without scale."""
    context.view_layer.update()
    return unscaled(matrices(rig.pose.bones, "matrix"))


# Two bones coincide if their distance is below the first number, a fraction of their length, and the cosine of the
# angle between them is above the second number.
_NEAR: Final = 1e-3
_ALONG: Final = 1.0 - 1e-5
# A control that rotates this fraction of the mesh's bones rotates the whole body.
MOST: Final = 0.9
# A bone whose rotation differs from its control's by more than this fraction is also twisted by other bones.
_LOOSE: Final = 0.01
# Fractions of a rotation that are closer to 0 or 1 than this count as 0 or 1.
_NONE: Final = 0.02
# Fraction of the rig's size. With a shorter lever, the effect of a rotation is too small to measure.
_NO_ARM: Final = 1e-4


@dataclass(frozen=True)
class Carrier:
    """A bone of the body and its control; parent: the next bone of the body above it, or ""."""

    bone: str
    control: str
    parent: str
    full: bool


def find_carriers(trials: Trials, by_hand: Mapping[str, str]) -> list[Carrier]:
    """The bones of the body, parents first: for each control that rotates the mesh, the bone that represents it.

    by_hand: controls that were chosen for bones.
    """
    owners = _owners(trials)
    groups: dict[int, list[int]] = {}
    for bone in np.flatnonzero(trials.deform & (owners >= 0)):
        groups.setdefault(int(owners[bone]), []).append(int(bone))
    chosen: dict[int, int] = {}
    for control, members in sorted(
        groups.items(), key=lambda item: min((len(trials.above(bone)), bone) for bone in item[1])
    ):
        chosen[control] = _representative(trials, owners, control, members, set(chosen.values()))
    parents = _parents(trials, owners, chosen)
    everywhere = trials.follows[:, trials.deform].mean(axis=1) > MOST
    for control, bone in list(chosen.items()):
        # Leave out a bone inside the body that rotates fully only with the whole body, because it follows other bones.
        if everywhere[control] and parents[bone] >= 0:
            del chosen[control]
            above = parents.pop(bone)
            parents = {each: above if its == bone else its for each, its in parents.items()}

    def depth(bone: int) -> int:
        return 0 if parents[bone] < 0 else depth(parents[bone]) + 1

    names, written, found = trials.bones, np.array(list(chosen), dtype=np.int64), []
    controls = {bone: control for control, bone in chosen.items()}
    for bone in sorted(parents, key=lambda each: (depth(each), each)):
        control = controls[bone]
        # Whether the bone follows its control in swing and twist when any control is rotated.
        column = trials.bones.index(trials.controls[control])
        apart = np.linalg.norm(trials.turned[written, bone] - trials.turned[written, column], axis=-1)
        alike = apart < _LOOSE * np.linalg.norm(trials.turns[written], axis=-1)
        is_full = bool(trials.full[control, bone] and alike[written != control].all())
        parent = names[parents[bone]] if parents[bone] >= 0 else ""
        found.append(Carrier(names[bone], by_hand.get(names[bone], trials.controls[control]), parent, is_full))
    return found


def _owners(trials: Trials) -> IntArray:
    """(N,) the control of each bone; -1 if none rotates it.

    If several controls rotate a bone about its own head, its control is the one that rotates most of the mesh;
    controls that do not move the bones below only bend the mesh of a limb. If no control rotates the bone about its own
    head, its control is the innermost one that rotates it.
    """
    turned = trials.follows
    rows = [trials.bones.index(name) for name in trials.controls]
    # If two controls rotate the same mesh bones, the outer one also rotates the other.
    deform, others = turned[:, trials.deform].sum(axis=1), turned[:, rows].sum(axis=1) / (len(turned) + 1.0)
    stays = np.linalg.norm(trials.moved, axis=-1) < _NEAR * trials.lengths
    carried, leaves = trials.carried, np.zeros(trials.full.shape, dtype=bool)
    for bone in np.flatnonzero(trials.deform & (trials.parents >= 0)):
        leaves[:, trials.parents[bone]] |= ~carried[:, bone]
    pivoting = turned & stays & ~leaves
    inner = np.argmin(np.where(turned, (deform + others)[:, None], np.inf), axis=0)
    outer = np.argmax(np.where(pivoting, (deform - others)[:, None], -1.0), axis=0)
    owners = np.where(pivoting.any(axis=0), outer, inner)
    return np.where(turned.any(axis=0), owners, -1)


def _representative(trials: Trials, owners: IntArray, control: int, members: Sequence[int], taken: set[int]) -> int:
    """The bone that represents all bones that a control rotates.

    In order of preference: a bone rotated about its own head, the topmost bone, a bone that also follows twist, the
    longest bone, a bone below another body bone, a bone of the mesh.
    """
    itself = trials.bones.index(trials.controls[control])
    head, full = trials.rest[itself, :3, 3], trials.full[control]
    own = [int(bone) for bone in np.flatnonzero(owners == control) if trials.bones[int(bone)] not in trials.shaped]
    # Bones that coincide with a bone of the mesh can represent it.
    heads, axes = trials.rest[:, :3, 3], trials.rest[:, :3, 1]
    apart = np.linalg.norm(heads[own][:, None] - heads[members], axis=-1)
    alike = ((apart < _NEAR * trials.lengths[own][:, None]) & (axes[own] @ axes[members].T > _ALONG)).any(axis=1)
    candidates = [bone for bone, coincides in zip(own, alike, strict=True) if coincides or bone in members]
    # If the mesh follows controls directly, the controls form the body.
    candidates = candidates or list(members)
    # In some animals' tails, the bones below a control point back to it, so that their joint is at their tail. Then the
    # control represents them.
    gaps = np.linalg.norm(heads + axes * trials.lengths[:, None] - head, axis=1)
    if all(gaps[bone] < _NEAR * trials.lengths[bone] and itself in trials.above(bone) for bone in candidates):
        return itself

    def worth(bone: int) -> tuple[float, ...]:
        pivots = bool(np.linalg.norm(trials.rest[bone, :3, 3] - head) < _NEAR * trials.lengths[bone])
        top = 0 if pivots else -len(trials.above(bone))
        length = float(round(trials.lengths[bone] / trials.lengths.max(), 4))
        return pivots, top, full[bone], length, int(trials.parents[bone]) in taken, trials.deform[bone], -bone

    return max(candidates, key=worth)


def _parents(trials: Trials, owners: IntArray, chosen: Mapping[int, int]) -> dict[int, int]:
    """The parent of each bone of the body: the next body bone above it, or else the body bone that rotates it."""
    parents = dict.fromkeys(chosen.values(), -1)
    turned = trials.follows
    over = {control: [int(owners[up]) for up in trials.above(bone)] for control, bone in chosen.items()}
    inner = sorted(chosen, key=lambda control: (int(turned[control].sum()), control))
    turning = {control: [each for each in inner if turned[each, bone]] for control, bone in chosen.items()}
    for candidates in (over, turning):
        for control, bone in chosen.items():
            for each in candidates[control] if parents[bone] < 0 else ():
                above = chosen.get(each, bone)
                while above not in (-1, bone):
                    above = parents[above]
                if above < 0:
                    parents[bone] = chosen[each]
                    break
    return parents


@dataclass(frozen=True)
class Frame:
    """The names of the controls that a control's frame follows; "" for none.

    The frame rotates with the first control, and by a `share` with the second. Its head is fixed to the third.
    """

    turns_with: str = ""
    shares_turn: str = ""
    share: float = 0.0
    moves_with: str = ""


def find_frames(trials: Trials, written: Collection[str]) -> dict[str, Frame]:
    """The frame of each control: the innermost written control that it follows."""
    is_written = np.array([name in written for name in trials.controls])
    rows = [trials.bones.index(name) for name in trials.controls]
    full, shares, carried = trials.full[:, rows], trials.shares[:, rows], trials.carried[:, rows]
    heads = trials.rest[rows, :3, 3]
    apart = np.linalg.norm(heads[:, None] - heads[None], axis=-1) > _NO_ARM * np.ptp(heads, axis=0).max()
    # Outer controls rotate more other controls; if two rotate the same ones, the outer one rotates more bones.
    sizes = full.sum(axis=1) + trials.full.sum(axis=1) / (1.0 + len(trials.bones))

    def innermost(chosen: BoolArray) -> str:
        found = np.flatnonzero(chosen)
        return trials.controls[found[np.argmin(sizes[found])]] if len(found) else ""

    frames = {}
    for column, name in enumerate(trials.controls):
        others = is_written & (np.arange(len(rows)) != column)
        first = innermost(others & full[:, column])
        # Ignore a control that rotates the leader and this control by the same fraction, because it acts through the
        # leader.
        leader = trials.controls.index(first) if first else column
        own = np.isnan(shares[:, leader]) | (np.abs(shares[:, column] - shares[:, leader]) > _NONE) | (not first)
        part = others & own & (shares[:, column] > _NONE) & (shares[:, column] < 1.0 - _NONE)
        second = innermost(part)
        share = float(shares[trials.controls.index(second), column]) if second else 0.0
        rest = np.abs(shares[:, column] - (1.0 - share)) < _NONE
        if second:
            # Controls that share a rotation do not rotate each other. A control that rotates both is farther out.
            row = trials.controls.index(second)
            first = innermost(part & rest & ~full[row] & ~full[:, row]) or first
        moving = others & carried[:, column] & (apart[:, column] | full[:, column])
        frames[name] = Frame(first, second, round(share, 3), innermost(moving))
    return frames
