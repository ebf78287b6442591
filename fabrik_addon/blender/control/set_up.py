"""Tries the controls of a control rig to find out how it works, and stores the result with the armature.

A limb's IK controls move it only while it is on IK.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

import numpy as np
from bpy.types import Context, Object, PoseBone
from mathutils import Matrix, Vector

from ...core.arrays import BoolArray, FloatArray
from ...core.errors import first_few
from ...core.rotations import product, quaternion_from_rotation_vector
from ...human.naming_schemes import match
from ..rig import pose_writer
from ..rig.armature import RigError, Tree, bone_offset, check_editable, check_rig, rest_matrices
from ..rig.keyframes import bone_path
from ..settings.control import FabrikCarrier, FabrikControlRig, may_be_control_rig, solved_bone
from ..settings.in_use import add_item, values_of
from ..settings.rig import rig_settings
from . import switches as switching
from . import writer as writing
from .posed_rig import ControlRig
from .trials import MOST, TRIED_AXIS, Carrier, Frame, Trials, find_carriers, find_frames, try_controls

# A control is needed only if other controls cannot reproduce more than this fraction of its effect. Smaller differences
# may come from the curvature of the trials' arcs.
_NEW: Final = 0.1
# A joint is a hinge if its bend about a second axis is at most the first number times its main bend, and if the cosine
# of the angle between the hinge and an axis of the bone is at least the second number.
_ONE_AXIS: Final = 0.05
_ALONG: Final = 0.9994
# The least bend of a limb's joint in radians, or half of its bend at rest if that is less. Blender's IK has an error of
# 0.01 mm, or 0.2 degrees in a limb of half a meter that is bent by 1 degree.
_STRAIGHT: Final = 0.1
# Fraction of a trial's movement. A bone whose length changes by more is stretched (in Rigify by a tenth to a fifth).
_STRETCH: Final = 0.03
# Fraction of a trial's angle. A bone whose rotation differs by less from the control's follows it rigidly.
_RIGID: Final = 0.02
# A human rig is a control rig only if constraints move one of these bones. Constraints on fingers or eyes don't matter.
_PARTS: Final = frozenset({"hips", "spine", "chest", "neck", "head", "thigh", "shin", "foot", "upper_arm", "forearm"})
# A trial's step, in radians or fractions of a limb's length. Errors of single precision are a thousandth of it. The
# step does not fully straighten a limb that reaches 99.7 % of its length.
_TRIED: Final = 0.003
# Effects below this fraction of a trial step's largest effect are ignored.
_NOTHING: Final = 1e-3
# A channel that moves a limb's root by more than this fraction of a trial's movement detaches limb and control.
_SAME: Final = 0.01
# A bone belongs to the limb's end if it moves along all axes by at least _CARRIED of its control's movement. _LAGGING
# is enough if it rotates, per length, by less than _ROTATED. The end of an almost straight leg lags by 6 %. The bone
# above a paw, which does not belong to the end, lags by 3 % and rotates by 10 %.
_CARRIED: Final = 0.99
_LAGGING: Final = 0.9
_ROTATED: Final = 0.01

# Radians. The angle is large enough to detect movements that are not rigid.
_TURN: Final = 0.4
_LISTS: Final = ("carriers", "controls", "switches", "along")


class _TriedLimb(writing.LimbOnIk):
    """A limb on IK, and the effects of its controls' channels, which trials measure.

    Attributes:
        columns: for each free channel, the index of its control, and its index among the control's six channels.
        units: (6,) the steps of a trial.
        jacobian: (6 B, C) effects of a trial's step of C channels on B bones, in the units of `differences`.
    """

    def __init__(self, rig: Object, bones: Sequence[str], controls: Sequence[str]) -> None:
        """Read the bones and the channels; does not try any control yet."""
        super().__init__(rig, bones, controls)
        self.units = _TRIED * np.array([self.size, self.size, self.size, 1.0, 1.0, 1.0])
        free = [writing.free_channels(rig.pose.bones[name]) for name in controls]
        self.columns = [(index, int(axis)) for index, each in enumerate(free) for axis in np.flatnonzero(each)]
        self.jacobian = np.zeros((6 * len(self.bones), len(self.columns)))

    def effects(self, control: str) -> FloatArray:
        """(6 B, N) the effects of a control's N channels on the bones."""
        own = [column for column, (place, _) in enumerate(self.columns) if self.controls[place] == control]
        return self.jacobian[:, own]

    def moves(self, control: str) -> bool:
        """Whether a control has an effect on the bones."""
        return bool(np.abs(self.effects(control)).max(initial=0.0) > _NOTHING * self.units[0])

    def ignore_detached(self) -> None:
        """Ignore channels that move the limb's root, because they detach the limb from its control."""
        self.jacobian[:, np.abs(self.jacobian[:3]).max(axis=0) > _SAME * self.units[0]] = 0.0

    @property
    def carried(self) -> BoolArray:
        """(N, B) whether each bone follows the translation of each control along all axes, like the limb's end."""
        distances, turns = np.linalg.norm(self.jacobian.reshape(len(self.bones), 2, 3, -1), axis=2).swapaxes(0, 1)
        lagging = (distances > _LAGGING * self.units[0]) & (turns < _ROTATED * self.units[0])
        moved = lagging | (distances > _CARRIED * self.units[0])
        places, axes = np.array(self.columns).T
        along = [(places == control) & (axes < 3) for control in range(len(self.controls))]
        return np.array([moved[:, own].sum(axis=1) == 3 for own in along])

    @property
    def leader(self) -> str:
        """The IK control: the control with the most followers among the bones."""
        return self.controls[int(np.argmax(self.carried.sum(axis=1)))]


def _try_channels(update: writing.Update, limbs: Sequence[_TriedLimb]) -> None:
    """Measure the effects of the limbs' control channels on their bones, one channel of each limb at a time."""
    writing.evaluate(update, limbs)
    held, here = [pose_writer.HeldChannels(limb.rig, limb.controls) for limb in limbs], [limb.here for limb in limbs]
    for column in range(max((len(limb.columns) for limb in limbs), default=0)):
        trying = [row for row, limb in enumerate(limbs) if column < len(limb.columns)]
        for row in trying:
            limb = limbs[row]
            place, axis = limb.columns[column]
            steps = np.where(np.arange(6) == axis, limb.units, 0.0)
            writing.add_to_channels(limb.rig.pose.bones[limb.controls[place]], steps)
        writing.evaluate(update, limbs)
        for row in trying:
            limbs[row].jacobian[:, column] = limbs[row].differences(limbs[row].here, here[row])
            held[row].restore()
    writing.evaluate(update, limbs)


def _hinge(turned: FloatArray, upper: Matrix, lower: Matrix) -> tuple[str, float, float]:
    """The axis ("" for several) and the range of a joint's bend, from rotation vectors `turned` (3, T) of T trials."""
    axes, sizes, _ = np.linalg.svd(turned)
    local = np.array(lower.to_3x3()).T @ axes[:, 0]
    along = int(np.argmax(np.abs(local)))
    if sizes[1] > _ONE_AXIS * sizes[0] or abs(local[along]) < _ALONG or along == 1:
        return "", 0.0, 0.0
    above, below = (each.col[1].to_3d() for each in (upper, lower))
    rest_bend = float(np.arctan2(above.cross(below).dot(lower.col[along].to_3d()), above.dot(below)))
    least = min(_STRAIGHT, 0.5 * abs(rest_bend))
    low, high = (least, np.pi) if rest_bend > 0.0 else (-np.pi, -least)
    return "XYZ"[along], low - rest_bend, high - rest_bend


def _chosen(limb: _TriedLimb) -> list[str]:
    """The necessary controls: the IK control, then, from the innermost, those that add an effect.

    For example, a pole that the rig's IK does not use by default has no effect.
    """
    chosen, known = [], np.zeros((len(limb.jacobian), 0))
    for name in (limb.leader, *(name for name in reversed(limb.controls) if name != limb.leader)):
        does = limb.effects(name)
        # A control adds an effect if one of its columns is not a linear combination of the columns found so far.
        rest = does - known @ (np.linalg.pinv(known, rcond=_NOTHING) @ does) if known.size else does
        sizes = np.linalg.norm(does, axis=0)
        adds = (np.linalg.norm(rest, axis=0) > _NEW * np.maximum(sizes, _NEW * sizes.max())).any()
        if not limb.moves(name) or adds:
            chosen.append(name)
            known = np.concatenate([known, does], axis=1)
    return chosen


@dataclass(frozen=True, eq=False)
class _Found:
    """The results of trials with limbs on FK and on IK, and the IK/FK switches with their values on FK."""

    on_fk: Trials
    on_ik: Trials
    switches: Mapping[switching.Switch, float]
    carriers: Sequence[Carrier]
    frames: Mapping[str, Frame]
    place: str


def use_control_rig(context: Context, rig: Object) -> tuple[str, list[str]]:
    """Find the bones of a rig's body and their controls, and store them on the armature.

    Controls that were chosen by hand are kept. Pose, keys and properties of the rig are restored. Returns a line to
    show, and a warning about bones that no control moves correctly.

    Raises RigError, with nothing changed, if the rig has no bones that constraints move, or no control.
    """
    check_rig(rig)
    check_editable(rig)
    if rig.data.pose_position == "REST":
        raise RigError(f"{rig.name!r} is in rest position: switch it to pose position")
    if not pose_writer.constrained_bones(rig):
        raise RigError(f"{rig.name!r} is not a control rig (no bone is moved by constraints): drag its bones directly")
    setup = rig_settings(rig).control
    by_hand = {carrier.name: carrier.control for carrier in setup.carriers if carrier.found == "HAND"}
    keeper = pose_writer.PoseKeeper(context.scene, rig)
    values = {path: pose_writer.read_switch(rig, path) for path in switching.custom_numbers(rig)}
    # Without these constraints, each control of a tail rotates its own bone. The writer takes them into account.
    curling = {bone.name: each for bone in rig.pose.bones if (each := writing.curling_constraint(bone)) is not None}
    try:
        for each in curling.values():
            each.mute = True
        for bone in rig.pose.bones:
            bone.matrix_basis.identity()
        _Search(context, rig, by_hand).run()
        for name, each in curling.items():
            own, row = (setup.controls.get(control) for control in (name, each.subtarget))
            if own is not None and row is not None and not row.stands_for:
                row.stands_for = own.stands_for
    finally:
        pose_writer.write_switches(rig, values)
        for each in curling.values():
            each.mute = False
        keeper.restore()
        context.view_layer.update()
    _map_effectors(rig)
    names = setup.uncarried.split(", ") if setup.uncarried else []
    left = f"No control moves {first_few(names)}: these bones only follow their parents"
    return f"{len(setup.carriers)} bones of {rig.name!r} are posed with controls", [left] if names else []


def _map_effectors(rig: Object) -> None:
    """Convert the targets and pins of controls to those of the bones that they represent, at the same points."""
    for each in rig_settings(rig).effectors:
        chosen = each.shown_bone
        solved = solved_bone(rig, chosen)
        if solved != each.bone and each.bone in rig.data.bones:
            old, new = (rig.data.bones[name].matrix_local for name in (each.bone, solved))
            point = bone_offset(rig.pose.bones[each.bone], each.point, each.offset)
            each.offset = new.inverted() @ old @ Vector(point)
            each.pin_rotation = each.pin_rotation @ (old.inverted() @ new).to_quaternion()
            each.bone, each.control, each.point = solved, chosen, "OFFSET"


def set_up_first(context: Context, rig: Object) -> tuple[str, list[str]]:
    """Set up a control rig that is not set up yet; its bones can't be posed otherwise.

    Returns the result of `use_control_rig`. Returns ("", []) and changes nothing if no constraint moves the trunk, arms
    or legs, or if no control moves the bones that constraints move, for example because IK legs follow an empty. A rig
    that has targets or pins stays as it is, because they may be on controls, which are no longer solved after a setup.
    """
    if not may_be_control_rig(rig) or len(rig_settings(rig).effectors):
        return "", []
    deform = [bone.name for bone in rig.data.bones if bone.use_deform]
    parts = [name for name, role in match(deform).items() if role.part in _PARTS]
    owned = pose_writer.constrained_bones(rig).keys() & set(parts or deform)
    with suppress(RigError), _kept_if_failing(rig_settings(rig).control):
        found = use_control_rig(context, rig) if owned else ("", [])
        if owned.isdisjoint(rig_settings(rig).control.carriers.keys()):
            raise RigError(f"No control of {rig.name!r} can move a deform bone to its pose: drag its bones directly")
        return found
    return "", []


class _Search:
    """The search for the body of a rig at rest, and for its controls.

    Attributes:
        setup: the data stored with the armature.
        after: for each bone, the bones that may follow it.
        by_hand: the controls that were chosen for bones.
    """

    def __init__(self, context: Context, rig: Object, by_hand: Mapping[str, str]) -> None:
        self.context, self.rig, self.update = context, rig, context.view_layer.update
        self.setup, self.after, self.by_hand = rig_settings(rig).control, switching.dependents(rig), by_hand

    def run(self) -> None:
        """Find the body and its controls, and store them; if this fails, the earlier setup stays."""
        rig, setup, found = self.rig, self.setup, self._try()
        if not found.carriers:
            raise RigError(f"No control of {rig.name!r} rotates a deform bone: drag its bones directly")
        with _kept_if_failing(setup):
            self._keep(found)
            self._set(found.switches)
            # Unlock the location of the root control while trials find the bones that it moves.
            place: PoseBone | None = rig.pose.bones.get(setup.place)
            locks = None if place is None else place.lock_location[:]
            try:
                if place is not None:
                    place.lock_location = (False, False, False)
                self._remove_interfering_bones()
            finally:
                if place is not None:
                    place.lock_location = locks
            if not len(setup.carriers):
                raise RigError(
                    f"No control of {rig.name!r} can move a deform bone to its pose: drag its bones directly"
                )
            self._find_limb_controls(self._movable(pose_writer.constrained_bones(rig)), found.on_ik)
        trials = found.on_fk
        left = [trials.bones[bone] for bone in np.flatnonzero(trials.deform & ~trials.follows.any(axis=0))]
        left += [carrier.bone for carrier in found.carriers if carrier.bone not in setup.carriers]
        setup.uncarried = ", ".join(left)

    def _try(self) -> _Found:
        """Try all controls, with limbs on FK and on IK; if IK is always on, also with IK turned off."""
        switches = switching.possible_switches(self.context, self.rig)
        values = {each: pose_writer.read_switch(self.rig, each.path) for each in switches}
        owned = set(pose_writer.constrained_bones(self.rig))
        self._set({each: 1.0 - round(value) for each, value in values.items()})
        self.update()
        owned &= set(pose_writer.constrained_bones(self.rig))
        self._set(values)
        self.update()
        controls = [name for name in self._movable(owned) if self._turns(name)]
        if not controls:
            raise RigError(f"{self.rig.name!r} has no control that can be rotated: drag its bones directly")
        found = self._tried(controls, switches)
        follows = found.on_fk.follows
        deform = found.on_fk.deform
        has_own = follows[follows[:, deform].mean(axis=1) <= MOST].any(axis=0)
        left = {found.on_fk.bones[place] for place in np.flatnonzero(deform & ~has_own)}
        lone = [
            each for each in switching.permanent_iks(self.rig) if any(self.after[bone] & left for bone in each.bones)
        ]
        if not lone:
            return found
        freed = (name for each in lone for name in sorted(each.bones) if self._turns(name))
        return self._tried(list(dict.fromkeys([*controls, *freed])), [*switches, *lone])

    def _tried(self, controls: list[str], possible: Sequence[switching.Switch]) -> _Found:
        tables: dict[tuple[float, ...], Trials] = {}

        def table(values: Mapping[switching.Switch, float]) -> Trials:
            key = tuple(values.values())
            if key not in tables:
                self._set(values)
                tables[key] = try_controls(self.context, self.rig, controls, self.after)
            return tables[key]

        current = try_controls(self.context, self.rig, controls, self.after)
        # Use a switch that makes bones follow other bones, unless one of these is a control that rotates the mesh now.
        # Use a switch that only releases bones if one of the released bones is a control.
        turning = (current.follows & current.deform).any(axis=1)
        moving = {control for control, is_turning in zip(current.controls, turning, strict=True) if is_turning}
        idle = {*current.controls}
        switches = [each for each in possible if not each.takes_over & moving and each.takes_over - (each.bones - idle)]
        values = {each: float(round(pose_writer.read_switch(self.rig, each.path))) for each in switches}
        if all(pose_writer.read_switch(self.rig, each.path) == value for each, value in values.items()):
            tables[tuple(values.values())] = current
        other = table({each: 1.0 - value for each, value in values.items()})
        on_fk = {
            each: 1.0 - value if _pivoting(other, each) > _pivoting(current, each) else value
            for each, value in values.items()
        }
        # Switches without an effect on the body, such as one that chooses a pole, are not changed.
        body = find_carriers(table(on_fk), self.by_hand)
        mine = {each: value for each, value in on_fk.items() if any(_has(each, carrier) for carrier in body)}
        fk, ik = table({**values, **mine}), table({**values, **{each: 1.0 - value for each, value in mine.items()}})
        self._set(values)
        carriers = find_carriers(fk, self.by_hand)
        # The root control is the innermost control that rotates the whole body.
        turned = fk.follows
        columns = [fk.bones.index(carrier.bone) for carrier in carriers]
        whole = [row for row in range(len(fk.controls)) if turned[row, columns].mean() > MOST] if columns else []
        place = fk.controls[min(whole, key=lambda row: int(turned[row].sum()))] if whole else ""
        frames = find_frames(fk, {place, *(carrier.control for carrier in carriers)})
        return _Found(fk, ik, mine, carriers, frames, place)

    def _movable(self, owned: Collection[str]) -> list[str]:
        """The bones that users move or rotate: those with a custom shape, or all if no bone has one.

        owned: bones that constraints move.
        """
        shaped = any(bone.custom_shape for bone in self.rig.pose.bones)
        return [
            bone.name
            for bone in self.rig.pose.bones
            if (bone.custom_shape or not shaped)
            and (bone.name not in owned or writing.is_additive(bone))
            and writing.free_channels(bone).any()
        ]

    def _turns(self, name: str) -> bool:
        """Whether locks allow a bone to rotate about axes other than its own Y."""
        bone = self.rig.pose.bones[name]
        return not (bone.lock_rotation[0] and bone.lock_rotation[2]) and not pose_writer.is_locked(bone)

    def _set(self, values: Mapping[switching.Switch, float]) -> None:
        for switch, value in values.items():
            pose_writer.write_switches(self.rig, switch.values(value))

    def _keep(self, found: _Found) -> None:
        for name in _LISTS:
            getattr(self.setup, name).clear()
        limbs: dict[str, str] = {}
        for carrier in found.carriers:
            kind = "HAND" if carrier.bone in self.by_hand else "TURNS" if carrier.full else "SWINGS"
            named = {"name": carrier.bone, "control": carrier.control, "parent": carrier.parent}
            # Limbs that share a switch are not connected. Parents come first.
            path = _switch_of(found, carrier)
            parents = [carrier.parent, *self._above(carrier.parent)] if path and carrier.parent else []
            above = (self.setup.carriers[name].switch for name in parents)
            # A limb's name is the path of its switch, with a number if other limbs share the switch.
            named_so = (path, *(f"{path} {number}" for number in range(2, len(limbs) + 2)))
            free = next(each for each in named_so if not path or each not in limbs)
            limb = next((each for each in above if limbs.get(each) == path), free)
            limbs[limb] = path
            add_item(self.setup.carriers, **named, found=kind, switch=limb)
        for name, frame in found.frames.items():
            add_item(self.setup.controls, name=name, **vars(frame), stands_for=_stands_for(found, name))
        for switch, value in found.switches.items():
            for name in [name for name, path in limbs.items() if path == switch.path] or [switch.path]:
                named = {"name": name, "shared": "" if name == switch.path else switch.path}
                add_item(self.setup.switches, **named, fk=value, ik=1.0 - value, only_ik=switch.only_ik)
            for path in switch.along:
                add_item(self.setup.along, name=path, switch=switch.path, fk=value, ik=1.0 - value)
        self.setup.place = found.place
        self.setup.active = 0

    def _remove_interfering_bones(self) -> None:
        """Remove bones from the body until rotating any bone leaves the others in their poses, at rest and on FK."""
        doubted = {row.name for row in self.setup.carriers}
        while doubted:
            blamed, doubted = self._interfering_bones(doubted)
            # Keep controls that were chosen by hand, even if they are wrong.
            blamed = {name for name in blamed if self.setup.carriers[name].found != "HAND"}
            if not blamed:
                break
            for name in blamed:
                doubted |= {row.name for row in self.setup.carriers if row.parent == name} | set(self._above(name))
                parent, control = self.setup.carriers[name].parent, self.setup.carriers[name].control
                if control != self.setup.place:
                    self._release_followers(control)
                rows: Sequence[FabrikCarrier] = self.setup.carriers
                for row in rows:
                    if row.parent == name:
                        row.parent = parent
                for each in self.setup.controls:
                    if each.stands_for == name:
                        each.stands_for = parent
                self.setup.carriers.remove(self.setup.carriers.find(name))
            doubted -= blamed

    def _interfering_bones(self, doubted: set[str]) -> tuple[set[str], set[str]]:
        """Test the bones in `doubted`; returns bones to remove from the body, and bones to test again afterwards."""
        blamed: set[str] = set()
        again: set[str] = set()
        self.update()
        for tree in ControlRig(self.rig, self.setup).trees():
            by_control = {self.setup.carriers[name].control: name for name in tree.skeleton.names if name in doubted}
            writer = writing.ControlWriter(self.update, self.rig, self.setup, tree.skeleton)
            waiting = switching.batches([each for each in by_control if each in self.after], self.after)
            while waiting:
                batch = waiting.pop()
                turned = [by_control[control] for control in batch]
                writer.write(self._with_rotated_bones(tree, turned), tree.root_location)
                self.update()
                off = [each.bone for each in writer.deviations()]
                following = {control: [name for name in off if name in self.after[control]] for control in batch}
                suspects = [control for control, mine in following.items() if mine]
                if len(suspects) > 1:
                    # A control may move bones only because the root control is moved too. So test such controls singly.
                    waiting += [[control] for control in suspects]
                    suspects = []
                for control in suspects:
                    mine, name = following[control], by_control[control]
                    limbs = any(self.setup.carriers[each].switch for each in mine)
                    if name in mine or limbs or any(name not in self._above(each) for each in mine):
                        # If rotating this bone moves a limb unexpectedly, remove this bone and keep the limb.
                        found = {name}
                    else:
                        # Bones below a bone that misses its pose may reach theirs once that bone is removed.
                        found = {each for each in mine if not set(mine) & set(self._above(each))}
                    blamed |= found
                    again |= {name} if found else set()
                writer.held.restore()
            self.update()
        return blamed, again

    def _above(self, name: str) -> list[str]:
        found = []
        while name := self.setup.carriers[name].parent:
            found.append(name)
        return found

    def _release_followers(self, control: str) -> None:
        """Make the followers of a control that is no longer written follow the leader of that control."""
        if control not in self.setup.controls:
            return
        left = self.setup.controls[control]
        for row in self.setup.controls:
            if row.moves_with == control:
                row.moves_with = left.moves_with
            if row.shares_turn == control:
                row.shares_turn = left.turns_with
            if row.turns_with == control:
                row.turns_with = left.turns_with
                if not row.shares_turn:
                    row.shares_turn, row.share = left.shares_turn, left.share

    def _with_rotated_bones(self, tree: Tree, bones: Sequence[str]) -> FloatArray:
        """(J, 4) local rotations with some bones rotated to the angles that the locks of their controls allow."""
        rotations = tree.rotations.copy()
        for name in bones:
            row = tree.skeleton.index(name)
            control = self.rig.pose.bones[self.setup.carriers[name].control]
            free = np.array(TRIED_AXIS)
            free[np.array(control.lock_rotation)] = 0.0
            axes = np.array((self.rig.pose.bones[name].matrix.inverted() @ control.matrix).to_3x3(), dtype=np.float64)
            turn = quaternion_from_rotation_vector(axes @ free * (_TURN / np.linalg.norm(free)))
            rotations[row] = product(rotations[row], turn)
        return rotations

    def _find_limb_controls(self, candidates: Sequence[str], on_ik: Trials) -> None:
        """Store the limb that each control moves on IK. Leaves the switches on IK.

        candidates: the controls that users may move or rotate. on_ik: the trials with limbs on IK.
        """
        limbs = {path: [row.name for row in rows] for path, rows in switching.limbs_of(self.setup).items()}
        carrying = {self.setup.place, *(row.control for row in self.setup.carriers)}
        free = sorted({*candidates} - carrying, key=lambda name: (-len(self.after[name]), name))
        mine = {path: self._exclusive_controls(limb, free) for path, limb in limbs.items()}
        pose_writer.write_switches(self.rig, {row.path: row.fk for row in self.setup.switches})
        # Controls that move a limb on FK do not place it on IK.
        on_fk = {path: _TriedLimb(self.rig, bones, mine[path]) for path, bones in limbs.items()}
        _try_channels(self.update, list(on_fk.values()))
        mine = {path: [name for name in mine[path] if not limb.moves(name)] for path, limb in on_fk.items()}
        pose_writer.write_switches(self.rig, {row.path: row.ik for row in self.setup.switches})
        tried = {path: _TriedLimb(self.rig, bones, mine[path]) for path, bones in limbs.items() if mine[path]}
        _try_channels(self.update, list(tried.values()))
        for path, limb in tried.items():
            limb.ignore_detached()
            for name in _chosen(limb):
                self._note(limb, name, path)
            end = limb.carried[limb.controls.index(limb.leader)]
            if end.any():
                self.setup.carriers[limb.bones[int(np.argmax(end))]].goes_by = limb.leader
                self._note_heel(limb, int(np.argmax(end)))
                # Some toes have the same control on FK and on IK.
                for name in limb.bones[int(np.argmax(end)) + 1 :]:
                    control = self.setup.carriers[name].control
                    if on_ik.full[on_ik.controls.index(control), on_ik.bones.index(name)]:
                        self.setup.controls[control].limb = path
            rows = [self.setup.carriers[name] for name in limb.bones]
            limb.hold({row.name: row.goes_by for row in rows if row.goes_by})
        self._stop_stretching(tried)

    def _exclusive_controls(self, limb: Sequence[str], controls: Sequence[str]) -> list[str]:
        """The controls that move a limb, and nothing else of the body except bones below the limb."""
        below = set(limb)
        for row in self.setup.carriers:
            if row.parent in below:
                below.add(row.name)
        mine, others = set(limb), {row.name for row in self.setup.carriers} - below
        return [name for name in controls if self.after[name] & mine and not self.after[name] & others]

    def _note(self, limb: _TriedLimb, control: str, path: str) -> None:
        """Store that a control moves a limb.

        A control that is only translated, a pole, is stored with the first bone that it rotates.
        """
        row = self.setup.controls.get(control)
        if row is None:
            row = add_item(self.setup.controls, name=control)
        row.limb = path
        if row.stands_for:
            return
        turned = np.abs(limb.effects(control)).reshape(len(limb.bones), -1).max(axis=1) > _NOTHING * limb.units[0]
        row.stands_for = limb.bones[int(np.argmax(turned))] if turned.any() else limb.bones[0]

    def _note_heel(self, limb: _TriedLimb, end: int) -> None:
        """Store the control, such as a paw's heel, that rotates only the bone above a limb's end, about all axes."""
        above = limb.bones.index(self.setup.carriers[limb.bones[end]].parent) if end else 0
        turned = limb.jacobian.reshape(len(limb.bones), 6, -1)[:, 3:] / limb.lengths[:, None, None]
        for index, name in enumerate(limb.controls if above else ()):
            own = [column for column, (control, axis) in enumerate(limb.columns) if control == index and axis >= 3]
            rigid = np.abs(np.linalg.norm(turned[above][:, own], axis=0) - limb.units[3]) < _RIGID * limb.units[3]
            if len(own) == 3 and rigid.all() and np.abs(turned[end][:, own]).max() < _NOTHING * limb.units[3]:
                self.setup.carriers[limb.bones[above]].goes_by = name

    def _stop_stretching(self, limbs: Mapping[str, _TriedLimb]) -> None:
        """Store the bones whose IK Stretch is turned off, if this keeps the limb's lengths constant.

        IK Stretch is Blender's bone setting, not a setting of the rig. Some limbs stretch only when they are bent
        more than in a trial.
        """
        iks: list[tuple[PoseBone, Any]] = []
        iks += [(bone, each) for bone in self.rig.pose.bones for each in bone.constraints if each.type == "IK"]
        chained = {each.name for bone, ik in iks if ik.use_stretch for each in pose_writer.moved_by(bone, ik)}
        stretching = [bone for bone in self.rig.pose.bones if bone.name in chained and bone.ik_stretch > 0.0]
        for path, limb in limbs.items():
            for bone in stretching:
                if not self.after[bone.name].isdisjoint(limb.bones):
                    stretch = bone_path(bone.name, "ik_stretch")
                    add_item(self.setup.along, name=stretch, switch=path, fk=bone.ik_stretch, ik=0.0)
            self.setup.switches[path].stretches = False
            pose_writer.write_switches(
                limb.rig, switching.with_linked_values(self.setup, {path: self.setup.switches[path].ik})
            )
        # A paw's rest pose may differ from that of its controls, because Rigify rotates the heel to match.
        rests = [rest_matrices(limb.rig, limb.bones) for limb in limbs.values()]
        writing.place_limbs(self.update, list(limbs.values()), rests)
        tried = {path: _TriedLimb(limb.rig, limb.bones, [limb.leader]) for path, limb in limbs.items()}
        _try_channels(self.update, list(tried.values()))
        for path, limb in tried.items():
            limb.ignore_detached()
            self._measure_joints(limb, path)

    def _measure_joints(self, limb: _TriedLimb, path: str) -> None:
        """Store how a limb's IK bends the joints between its first bone and its end, and whether it stretches the limb.

        The limb need not be exactly in its rest pose.
        """
        leader, end = limb.controls.index(limb.leader), limb.carried.any(axis=0)
        own = [column for column, (place, axis) in enumerate(limb.columns) if place == leader and axis < 3]
        moved, turned = np.split(limb.jacobian[:, own].reshape(len(limb.bones), 6, -1), 2, axis=1)
        turned = turned / limb.lengths[:, None, None]
        rest = [limb.rig.data.bones[name].matrix_local for name in limb.bones]
        here = limb.here
        for place in range(1, len(limb.bones)):
            row = self.setup.carriers[limb.bones[place]]
            above = limb.bones.index(row.parent) if row.parent in limb.bones else -1
            if above < 0 or end[above]:
                continue
            apart = here[place, :3, 3] - here[above, :3, 3]
            lengths = np.linalg.norm(apart[:, None] + moved[place] - moved[above], axis=0)
            if np.abs(lengths - np.linalg.norm(apart)).max() > _STRETCH * limb.units[0]:
                self.setup.switches[path].stretches = True
            if not end[place]:
                row.hinge, row.hinge_low, row.hinge_high = _hinge(
                    turned[place] - turned[above], rest[above], rest[place]
                )


@contextmanager
def _kept_if_failing(setup: FabrikControlRig) -> Iterator[None]:
    lists = [getattr(setup, name) for name in _LISTS]
    before, texts = [[values_of(row) for row in rows] for rows in lists], (setup.place, setup.uncarried)
    try:
        yield
    except BaseException:
        for rows, held in zip(lists, before, strict=True):
            rows.clear()
            for values in held:
                add_item(rows, **values)
        setup.place, setup.uncarried = texts
        raise


def _pivoting(trials: Trials, switch: switching.Switch) -> int:
    """The number of a switch's bones that some control rotates about their own heads."""
    columns = [trials.bones.index(name) for name in switch.bones]
    stays = np.linalg.norm(trials.moved[:, columns], axis=-1) < 1e-6
    return int((trials.full[:, columns] & stays).any(axis=0).sum())


def _has(switch: switching.Switch, carrier: Carrier) -> bool:
    """Whether a switch makes a carrier's bone follow other bones, or makes other bones follow the carrier's control."""
    return carrier.control in switch.takes_over or carrier.bone in switch.bones


def _switch_of(found: _Found, carrier: Carrier) -> str:
    """The path of a bone's switch, or of that of its control's parents, as for a paw's toes; "" for none."""
    names, body = found.on_fk.bones, {name for each in found.carriers for name in (each.bone, each.control)}
    parents = (names[bone] for bone in found.on_fk.above(names.index(carrier.control)))
    above = [*takewhile(lambda name: name not in body, parents)]
    return next((each.path for each in found.switches if _has(each, carrier) or not each.bones.isdisjoint(above)), "")


def _stands_for(found: _Found, control: str) -> str:
    """The bone of the body that belongs to a control, or else the uppermost bone that it rotates."""
    names = [carrier.bone for carrier in found.carriers if carrier.control == control]
    for trials in (found.on_fk, found.on_ik):
        turned = trials.follows[trials.controls.index(control)]
        names += [carrier.bone for carrier in found.carriers if turned[trials.bones.index(carrier.bone)]]
    return next(iter(names), "")
