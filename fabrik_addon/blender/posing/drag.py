"""Drags a bone: the rig follows inside its limits, and pinned bones stay. Works without a window.

Every step continues from the previous pose, and stays near the pose at the drag's start. So the motion is smooth, and a
drag that returns ends where it began.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Context, Object, Scene

from ...core import Effector, forward_kinematics
from ...core.arrays import FloatArray
from ...core.drag import DragPose
from ...core.errors import first_few
from ...core.kernel.relaxed import HangFrom
from ...core.model.effector import with_factors_applied
from ...core.model.skeleton import Skeleton
from ...core.rotations import product, quaternion_from_rotation_vector
from ...human.masses import KEEPS_ORIENTATION
from ..control.posed_rig import PosedRig, posed_rig
from ..control.writer import PLACED, LimbOnIk, held_by_ik, most_off
from ..goals import effectors
from ..goals.body import floor_of, hips_on_root, masses_of, part_of, side_bends, trunk_of_animal, up_of
from ..goals.effectors import Pin, pin_of
from ..goals.problem import ends_on_ik, rig_problem, root_mode
from ..rig import armature as armatures
from ..rig.keyframes import KeyframeError, check_action
from ..rig.keying import is_auto_keying, key_channels, locked_note, unkeyed_note, why_no_key
from ..rig.pose_writer import OTHERWISE, PoseKeeper
from ..settings.rig import FabrikEffector, rig_settings
from ..settings.why_not import enabled_effectors
from . import live
from .key_pose import forget_posed, note_posed
from .snap_targets import snap_targets
from .solve import preferred_pose

# A nearly taut rope stops short of its target, by 1.4 mm in a meter. So the root moves farther by this fraction.
_SLACK = 0.02
_ALONG: Final = np.array((1.0, 1.0, 1.0))
_MIRRORED: Final = np.array((-1.0, 1.0, 1.0))
# The location of a goal that has only a rotation.
_NOWHERE: Final = (np.nan, np.nan, np.nan)


class Grip(NamedTuple):
    """A point of a bone, and its goal at the drag's start.

    shift_factors: (3,) factors on the drag's translation: zeros for held points, (-1, 1, 1) for a mirrored point. limb:
    the limb whose end it is, if its IK control holds it.
    """

    effector: Effector
    goal: Pin
    shift_factors: FloatArray = np.zeros(3)
    limb: LimbOnIk | None = None


@dataclass(frozen=True)
class StepResult:
    """The result of a step, in world meters.

    error: distance of the dragged point from its target. pin_error: distance of a pin from its location.
    is_catching_up: whether joints ease in and have not arrived yet; repeating the step moves them on. deeper: the
    distance of the dragged point beyond its target along the step's `depth`. why: the reason why the dragged point
    misses its target, such as "foot.L is at its limit"; "" if there is none.
    """

    error: float = 0.0
    pin_error: float = 0.0
    is_catching_up: bool = False
    deeper: float = 0.0
    why: str = ""

    @property
    def line(self) -> str:
        """The errors of the dragged point and of pins, in the scene's units and in one line; "" if there are none."""
        parts = []
        if self.error > armatures.SHOWN:
            parts.append(f"{armatures.length_text(self.error)} short" + (f": {self.why}" if self.why else ""))
        if self.pin_error > armatures.SHOWN:
            parts.append(f"a pin is {armatures.length_text(self.pin_error)} off")
        return ", ".join(parts)


class DragPart:
    """A bone and the bones below it, prepared once and solved at every move of the mouse.

    Attributes:
        moving_bones: names of the bones whose rotation moves a grip.
        turned: the bones that may rotate, as indices in the skeleton.
        moves_root: whether the top bone's location may change.
        ik_offsets: (E, 3) added to the targets, see `offsets_from`.
    """

    def __init__(self, setup: "DragSetup", top: str, *, turning: bool) -> None:
        """Prepare the part from one bone down, with all dragged or pinned bones on it.

        turning: whether the dragged bones get a target rotation. With pins the root mode "FOLLOW" acts like "FREE",
        because a root pulled by a rope would leave its pins.
        """
        armature, posed, self._scale = setup.armature, setup.posed, armatures.meters_per_unit(setup.armature)
        whole = setup.trees[top]
        self.tree = tree = armatures.tree_below(whole, posed.current_matrices(whole), top, setup.owned, setup.frozen)
        skeleton = tree.skeleton
        root = "FIXED"
        if top not in setup.frozen and (top == setup.hips_on_root or posed.may_move_freely(top)):
            pinned = any(pin.bone in skeleton.names for pin in setup.held)
            dragged = top if top in setup.dragged else next(iter(setup.dragged))
            root = root_mode(armature, pinned=pinned, dragged=dragged, top=top, setting=setup.settings.root)
        leads = top in setup.dragged and root != "FIXED"
        # People bend over their feet. An animal's trunk is supported at both ends, and moves as one piece.
        trunk = trunk_of_animal(armature) if leads else []
        self.grips = grips = setup.grips(tree, top, turning=turning, leads=leads, one_piece=bool(trunk))
        self.moves_root = root != "FIXED"
        self._positions = np.array([grip.goal.location for grip in grips])
        self._rotations = np.array([grip.goal.rotation for grip in grips])
        self._shift_factors = np.array([grip.shift_factors for grip in grips])
        self._dragged = self._shift_factors.any(axis=1)
        self._pins = ~self._dragged & np.array([grip.limb is None for grip in grips])
        self._oriented = any(grip.effector.rotation_weight > 0.0 for grip in grips)
        is_rope = root == "FOLLOW" and self._dragged.all()
        turned = {bone for grip in grips for bone in effectors.rotating_bones(skeleton, grip.effector)}
        self.moving_bones = {skeleton.names[bone] for bone in turned}
        self.turned = sorted(bone for bone in turned if skeleton.names[bone] not in setup.frozen)
        # Other bones follow only if the whole rig should. If its root is dragged without pins, it rotates as a whole.
        follows = setup.settings.reach == "WHOLE"
        hangs = follows and rig_settings(armature).free_limbs_hang and (bool(setup.held) or not leads)
        led = {*self.moving_bones, *setup.frozen, *posed.resting_limbs(setup.dragged)}
        free = _free_joints(posed, tree, led, hangs=hangs, bends=bool(setup.held)) if follows else []
        start = tree.rotations, tree.root_location
        # For each dragged point, its index among the grips, the heads of the bones above it, root first, and its
        # position.
        self._ropes: list[tuple[int, FloatArray, FloatArray]] = []
        if is_rope:
            heads = forward_kinematics(skeleton, *start)[:, :3, 3]
            # The toes of a dragged foot have a target rotation, but no position.
            for row in np.flatnonzero(np.isfinite(self._positions).all(axis=1)).tolist():
                path = skeleton.path(skeleton.index(grips[row].effector.bone))
                self._ropes.append((row, heads[path], self._positions[row]))
        self._trunk = () if is_rope else trunk
        self.problem = rig_problem(
            posed,
            tree,
            [grip.effector for grip in grips],
            sorted([*self.turned, *free]),
            free_root=self.moves_root and not is_rope,
            staying=tuple(grip.limb for grip in grips if grip.limb),
            pinned=tuple(grip.effector.bone for grip, is_pin in zip(grips, self._pins, strict=True) if is_pin),
        )
        self.session = self.problem.drag_solver(
            locks=self.problem.locks(tree.rotations),
            hang_from=HangFrom(*start, up_of(armature)[0], hangs) if follows else None,
            stiff=self._trunk,
        )
        self._preferred = preferred_pose(self.problem, start, self.turned)
        self.session.prefer(*self._preferred)
        self.session.begin(*start)
        rows = [(row, grips[row].effector.bone) for row in np.flatnonzero(self._dragged).tolist()]
        self._on_ik = [row for row, bone in rows if bone in posed.on_ik and not posed.leaves_ik(bone)]
        self.ik_offsets = self.offsets_from(self.points_on_ik())

    def points_on_ik(self) -> FloatArray:
        """(E, 3) the current positions of dragged points of limbs on IK, in armature space; NaN for other points."""
        points = np.full((len(self.grips), 3), np.nan)
        for row in self._on_ik:
            points[row] = effectors.current_point(self.problem.rig, self.grips[row].effector)
        return points

    def offsets_from(self, points: FloatArray) -> FloatArray:
        """(E, 3) from points of the rig to those of the solver's pose, which differ if IK stretches a limb.

        Zeros for points (E, 3) that are NaN.
        """
        return np.nan_to_num(self.session.points(self.session.rotations, self.session.location) - points)

    def targets(self, armature_shift: FloatArray) -> FloatArray:
        """(E, 3) the targets after the dragged points are translated by `armature_shift` (3,)."""
        return self._positions + self._shift_factors * armature_shift

    def solve(
        self,
        armature_shift: FloatArray,
        armature_turn: FloatArray,
        *,
        depth: FloatArray | None = None,
        settled: bool = False,
    ) -> tuple[DragPose, StepResult]:
        """The pose after the dragged points are translated by `armature_shift` (3,) and their bones rotated.

        All vectors are in armature space. armature_turn: (3,) rotation vector. depth: (3,) the unit direction along
        which the translation is free. The result's `why` is empty.
        """
        targets = self.targets(armature_shift) + self.ik_offsets
        target_rotations = None
        if self._oriented:
            turns = quaternion_from_rotation_vector(mirrored_turn(armature_turn, self._shift_factors))
            target_rotations = product(turns, self._rotations)
        if self._ropes:
            pulls = [pull_chain(joints, point, targets[grip]) for grip, joints, point in self._ropes]
            location = self.tree.root_location + np.asarray((1.0 + _SLACK) * np.mean(pulls, axis=0))
            self.session.prefer(self._preferred[0], location)
            self.session.continue_from(self.session.rotations, location)
        if self._trunk:
            self.session.prefer(self._preferred[0], self._preferred[1] + self._shift_factors[0] * armature_shift)
        free_directions = None if depth is None else np.where(self._shift_factors, self._shift_factors * depth, 0.0)
        found = self.session.solve(
            targets, target_rotations, free_directions=free_directions, eased=not settled, settled=settled
        )
        errors, deeper = self._scale * found.errors, 0.0
        if depth is not None:
            reached = self.session.points(found.rotations, found.root_location)[0]
            deeper = self._scale * float((reached - targets[0]) @ depth)
        error, pin_error = (errors[chosen].max(initial=0.0) for chosen in (self._dragged, self._pins))
        return found, StepResult(error, pin_error, found.is_held_back, deeper)


def pull_chain(joints: FloatArray, end: FloatArray, target: FloatArray) -> FloatArray:
    """(3,) the movement of the first of a chain's joints (N, 3) if the chain's end (3,) is pulled to a target (3,)."""
    pulled, last = target, end
    for joint in joints[::-1]:
        length = np.linalg.norm(last - joint)
        away = joint - pulled
        distance = np.linalg.norm(away)
        pulled, last = pulled + away * (length / distance if distance > 0.0 else 0.0), joint
    return np.asarray(pulled - joints[0])


def mirrored_turn(turn: FloatArray, shift_factors: FloatArray) -> FloatArray:
    """(..., 3) a drag's rotation vector (3,), mirrored for points whose translation has factors (..., 3)."""
    return np.asarray(turn * shift_factors * shift_factors[..., :1])


def _free_joints(posed: PosedRig, tree: armatures.Tree, led: Collection[str], *, hangs: bool, bends: bool) -> list[int]:
    """The joints of limbs without goals, which hang or rest on the floor, as indices in the skeleton.

    led: bones with goals, and limbs that are not dragged and that a control rig poses. bends: also the joints of a
    person's spine, which bends sideways for balance.
    """
    names, shares, floor = tree.skeleton.names, masses_of(posed.rig, tree.skeleton).hanging, floor_of(posed.rig)
    limbs = set() if shares is None else {names[bone] for bone in np.flatnonzero(shares)}
    lowest = set() if floor is None else {bone for bone, _ in floor.points}
    chosen = (limbs | lowest if hangs or floor else set()).union(side_bends(posed.rig) if bends else ()) - {*led}
    free = [bone for bone, name in enumerate(names) if name in chosen]
    return sorted(set(free) - posed.locks(tree.skeleton, free, tree.rotations).keys())


@dataclass(frozen=True)
class DragSettings:
    """Settings of a drag.

    Attributes:
        reach: the bones that follow: "WHOLE" for the rig, "PIN" up to the nearest pin, or "BONES" for some bones.
        bones: the number of bones, including the dragged one.
        root: "AUTO", "FIXED", "FREE" or "FOLLOW"; None for the rig's own setting.
        keep_orientation: feet and heads keep their orientation in the world while they are dragged.
        others: bones that are dragged by the same translation. Bones that are pinned, moved by constraints, or above or
            below another dragged bone are ignored.
    """

    reach: str = "WHOLE"
    bones: int = 3
    root: str | None = None
    keep_orientation: bool = True
    others: tuple[str, ...] = ()


class DragSetup:
    """An armature at the start of a drag.

    Attributes:
        armature: the object. posed: the rig. point: the dragged end of the bones. settings: those of the drag.
        held: the pins of other bones. trees: by bone, its tree in the current pose.
        dragged: the dragged bones, each with factors (3,) on the translation. The user's bone is the first.
        hips_on_root: hips whose parent carries the whole rig and does not follow; "" for none.
        owned: bones that constraints move, with the reason. No bones above them follow.
        frozen: bones that cannot be keyed, with the reason. They follow rigidly.
    """

    def __init__(
        self, armature: Object, bone: str, point: str, settings: DragSettings, *, over_time: bool = False
    ) -> None:
        """Read the armature in its evaluated pose. Raises RigError if the bone cannot be dragged.

        over_time: for edits over time, which move only the root of a tree.
        """
        armatures.check_rig(armature)
        armatures.check_editable(armature)
        bone = effectors.posable_bone(armature, bone)
        self.armature, self.point, self.settings = armature, point, settings
        self.posed = posed_rig(armature)
        self.owned, self.frozen = self.posed.owned, self.posed.frozen
        self.hips_on_root = "" if over_time else hips_on_root(armature)
        if bone in self.owned:
            raise armatures.RigError(f"Bone {bone!r} can't be dragged: {self.owned[bone]}; {OTHERWISE}")
        # Bones keep their current lengths, because dragging does not stretch them.
        trees = [armatures.stretched(armature, tree) for tree in self.posed.trees()]
        self.trees = {name: tree for tree in trees for name in tree.skeleton.names}
        self.dragged: dict[str, FloatArray] = {}
        left_out = {*self.owned, *(pin.bone for pin in effectors.pins(armature))}
        others = [name for name in settings.others if name in self.trees and name not in left_out]
        # If a whole limb is selected, drag its end.
        others.sort(key=lambda name: -len(armature.pose.bones[name].parent_recursive))
        for name in (bone, *others):
            if name in self._lines():
                continue
            self.dragged[name] = _ALONG
            other = armatures.opposite_bone(armature, armature.pose.bones[name]) if armature.pose.use_mirror_x else None
            if other is not None and other.name not in self.owned and other.name not in self._lines():
                self.dragged[other.name] = _MIRRORED
        self.held = [pin for pin in effectors.pins(armature) if pin.bone not in self.dragged]
        self._loops = [
            (each, partner)
            for each in enabled_effectors(armature)
            if (partner := effectors.loop_partner(armature, each))
            and each.bone in armature.pose.bones
            and each.bone != partner.bone
        ]
        kept = [*self.held, *(each for each, _ in self._loops)]
        # The dragged bones miss their targets before any held point does.
        self._priority = 1 + max((each.priority for each in kept), default=0)

    def _lines(self) -> set[str]:
        """The dragged bones, and all bones above and below them."""
        bones = [self.armature.pose.bones[name] for name in self.dragged]
        return {each.name for bone in bones for each in (bone, *bone.parent_recursive, *bone.children_recursive)}

    @cached_property
    def _by_ik(self) -> list[LimbOnIk]:
        return held_by_ik(self.armature, bpy.context.view_layer.update)

    @cached_property
    def tops(self) -> list[str]:
        """The uppermost bones that follow; none is below another. The first one belongs to the first dragged bone."""
        found: dict[str, None] = {}
        pinned = {pin.bone for pin in self.held}
        for bone in self.dragged:
            path, first = self._path(bone), 0
            if self.settings.reach == "PIN":
                first = max((index + 1 for index, name in enumerate(path[:-1]) if name in pinned), default=0)
            elif self.settings.reach == "BONES":
                # A bone that is dragged by its head does not rotate.
                turning = len(path) - (self.point == "HEAD" and len(path) > 1)
                first = max(0, turning - self.settings.bones)
            found[path[first]] = None
        bones = self.armature.pose.bones
        tops = [top for top in found if not any(above.name in found for above in bones[top].parent_recursive)]
        path = self._path(next(iter(self.dragged)))
        return sorted(tops, key=lambda top: top not in path)

    def parts(self, *, turning: bool) -> list[DragPart]:
        """The parts of the rig that follow; turning: whether the dragged bones get a target rotation."""
        return [DragPart(self, top, turning=turning) for top in self.tops]

    def _path(self, bone: str) -> list[str]:
        """The bones that may follow a dragged bone, including itself, uppermost first."""
        skeleton = self.trees[bone].skeleton
        path = [skeleton.names[each] for each in skeleton.path(skeleton.index(bone))]
        first = max((index + 1 for index, name in enumerate(path) if name in self.owned), default=0)
        if self.hips_on_root in path[first:]:
            first = path.index(self.hips_on_root)
        return path[first:]

    def grips(self, tree: armatures.Tree, top: str, *, turning: bool, leads: bool, one_piece: bool) -> list[Grip]:
        """The grips on a tree below the bone `top`.

        leads: whether the top bone is the dragged one, and may move. one_piece: whether its trunk moves as one piece.
        """
        names = tree.skeleton.names
        grips, offset = list[Grip](), None if self.point == "TAIL" else armatures.BONE_HEAD
        for bone, factors in [(bone, factors) for bone, factors in self.dragged.items() if bone in names]:
            weight = self.rotation_weight(bone, turning=turning and not leads, stays=bone == top and not leads)
            pose_bone = self.armature.pose.bones[bone]
            goal = Pin(armatures.armature_point(pose_bone, self.point)[:], pose_bone.matrix.to_quaternion()[:])
            effector = Effector(bone, offset=offset, rotation_weight=weight, priority=self._priority)
            grips.append(Grip(effector, goal, factors))
        grips += [grip for foot in grips for grip in self._toe_grips(foot, tree.skeleton)]
        if leads and (turning or not self.held or one_piece):
            grip = grips[0]
            effector = replace(grip.effector, rotation_weight=1.0, priority=grip.effector.priority - 1)
            grips.append(grip._replace(effector=effector, goal=grip.goal._replace(location=_NOWHERE)))
        grips += [Grip(effectors.core_effector(pin), pin_of(pin)) for pin in self.held if pin.bone in names]
        grips += [grip for each, partner in self._loops for grip in self._loop_grips(each, partner, names)]
        goals = [grip.effector for grip in grips]
        staying = ends_on_ik(tree.skeleton, goals, self._by_ik, self.dragged, self._priority - 1)
        grips += [Grip(effector, Pin(tuple(limb.place)), limb=limb) for effector, limb in staying]
        skeleton = self.trees[top].skeleton
        ends = {end for grip in grips for end in (grip.effector.bone, grip.effector.target_bone) if end}
        armatures.check_unscaled(
            self.armature, [skeleton.names[bone] for end in ends for bone in skeleton.path(skeleton.index(end))]
        )
        stretches = armatures.current_factors(self.armature, names)
        return [grip._replace(effector=with_factors_applied([grip.effector], stretches)[0]) for grip in grips]

    def _loop_grips(self, effector: FabrikEffector, partner: effectors.Partner, names: Sequence[str]) -> Iterator[Grip]:
        """The grips that keep a loop closed: on both sides, or on one side if the other does not move."""
        one = replace(effectors.core_effector(effector), rotation_weight=0.0)
        other = Effector(partner.bone, partner.offset, one.weight, priority=one.priority)
        if one.bone in names and other.bone in names:
            yield Grip(replace(one, target_bone=partner.bone, target_offset=partner.offset), Pin((0.0, 0.0, 0.0)))
            return
        for follower, leader in ((one, other), (other, one)):
            if follower.bone in names:
                yield Grip(follower, Pin(tuple(effectors.current_point(self.armature, leader))))

    def _toe_grips(self, foot: Grip, skeleton: Skeleton) -> Iterator[Grip]:
        """The grips that hold only the orientation of the toes of a dragged foot.

        As its heel rises, the toes stay flat. Their joint is a hinge, so the foot does not roll or turn aside.
        """
        fixed = {*self.frozen, *(pin.bone for pin in self.held)}
        for bone in np.flatnonzero(np.equal(skeleton.parents, skeleton.index(foot.effector.bone))):
            name = skeleton.names[bone]
            if foot.effector.rotation_weight > 0.0 and name not in fixed and part_of(self.armature, name) == "toe":
                effector = replace(foot.effector, bone=name, rotation_weight=KEEPS_ORIENTATION["toe"])
                goal = Pin(_NOWHERE, self.armature.pose.bones[name].matrix.to_quaternion()[:])
                yield foot._replace(effector=effector, goal=goal)

    def rotation_weight(self, bone: str, *, turning: bool, stays: bool) -> float:
        """The weight with which a dragged bone keeps its orientation; stays: whether the bone's head cannot move.

        turning: whether the bone gets a target rotation.
        """
        if turning or self.posed.keeps_rotation(bone):
            return 1.0
        if stays or not self.settings.keep_orientation:
            return 0.0
        part = part_of(self.armature, bone)
        # If a hand is pinned, the hips tilt with the trunk. Otherwise they tilt only for balance.
        if part == "hips" and "hand" in {part_of(self.armature, pin.bone) for pin in self.held}:
            return 0.0
        return KEEPS_ORIENTATION.get(part, 0.0)


# Fraction of the dragged bone's length, and radians. A smaller translation or rotation is ignored, so that the pose
# stays exactly as at the start.
_LEAST: Final = 1e-7
# On release, an elbow or knee of a limb that IK stretches is moved to its target in at most this many steps.
_CORRECTIONS: Final = 4
# On release, a miss is reported if the error has grown by this many times the error that controls may leave.
_NAMED: Final = 5


class DragBase:
    """The common base of drags of one frame and drags over time. It exists from the press of the button to its release.

    Attributes:
        left_alone: notes on bones that cannot follow because something else moves them. After the drag, also the reason
            if auto-keying has inserted no key.
        notice: a line about other changes to the rig, such as limbs switched to FK; "" for none.
        result: that of the last step; after `finish`, that of the final pose.
        start: (3,) the position of the dragged point at the start, in world space.
        axes: (3, 3) the dragged bone's own axes at the start as columns, in world space.
    """

    start: FloatArray
    axes: FloatArray

    def __init__(self, scene: Scene, setup: DragSetup) -> None:
        self._setup, self._armature, self._dragged = setup, setup.armature, setup.dragged
        self._world = armatures.as_array(setup.armature.matrix_world)
        self._rotation_to_world = np.array(setup.armature.matrix_world.to_quaternion().to_matrix())
        self._scale = armatures.meters_per_unit(setup.armature)
        self._keeper = PoseKeeper(scene, setup.armature)
        self.left_alone, self.notice, self.result = list[str](), "", StepResult()

    def cancel(self) -> None:
        """Restore everything exactly."""
        self._keeper.restore()

    def _armature_shift(self, location: npt.ArrayLike) -> FloatArray:
        """(3,) the translation in armature space that moves the dragged point to a location (3,) in world space."""
        return np.linalg.solve(self._world[:3, :3], np.asarray(location, dtype=np.float64) - self.start)

    def _armature_turn(self, turn: npt.ArrayLike | None) -> FloatArray:
        """Convert a rotation vector (3,) from world space to armature space; None becomes (3,) zeros."""
        return np.zeros(3) if turn is None else np.asarray(turn, dtype=np.float64) @ self._rotation_to_world


class Drag(DragBase):
    """A drag of the current frame; `begin_drag` creates it."""

    def __init__(self, context: Context, setup: DragSetup) -> None:
        """Record the rig's state. Raises RigError if nothing can follow."""
        super().__init__(context.scene, setup)
        armature, bone = setup.armature, next(iter(setup.dragged))
        self._parts, self._turning_parts = setup.parts(turning=False), setup.parts(turning=True)
        self._last_parts = self._parts
        self._asked: tuple[npt.ArrayLike, npt.ArrayLike | None, npt.ArrayLike | None] | None = None
        if not any(part.turned or part.moves_root for part in self._parts):
            shown = setup.posed.shown(bone)
            if bone in setup.frozen:
                raise armatures.RigError(
                    f"Bone {shown!r} can't be dragged: {setup.frozen[bone]}, and no parent can follow; drag another"
                )
            raise armatures.RigError(
                f"Nothing can follow bone {shown!r} here: drag its tail, or let the root bone move"
            )
        self._writers = [
            setup.posed.writer(
                context.view_layer.update, part.tree.skeleton, part.problem.written, moves_root=part.moves_root
            )
            for part in self._turning_parts
        ]
        leaving = [bone for each in self._writers for bone in each.leaving_ik]
        self.notice = f"Limbs switched from IK to FK: {first_few(leaving)}" if leaving else ""
        # The pins that were moved to their bones before the drag, to be restored with the pose.
        self.moved_pins: Sequence[_MovedPin] = ()
        self._bones = armature.pose.bones.keys()
        self._has_soft_depth = part_of(armature, bone) == "hips"
        self._least_shift = _LEAST * armature.data.bones[bone].length
        moving = {name for part in self._parts for name in part.moving_bones}
        alone = {name: reason for name, reason in setup.frozen.items() if name in moving}
        for top in setup.tops:
            above = armature.pose.bones[top].parent
            if above is not None and above.name in setup.owned:
                alone[above.name] = setup.owned[above.name]
        self.left_alone = [
            f"Bone {setup.posed.shown(name)!r} was not changed: {reason}" for name, reason in alone.items()
        ]
        self.start = self._world[:3, :3] @ self._parts[0].grips[0].goal.location + self._world[:3, 3]
        self.axes = self._rotation_to_world @ armatures.bone_matrices(armature, [bone])[0, :3, :3]

    def step(
        self,
        location: npt.ArrayLike,
        turn: npt.ArrayLike | None = None,
        depth: npt.ArrayLike | None = None,
        *,
        settled: bool = False,
    ) -> StepResult:
        """Pose the rig with the dragged point at a location, and its bone rotated.

        Args:
            location: (3,) in world space.
            turn: (3,) rotation vector in radians and world space, relative to the start; None lets the bone rotate
                freely.
            depth: (3,) a direction in world space, such as the line of sight. A person's dragged hips may move along
                it, so that they move back in a squat. It is ignored for other bones: in a test, a chest with this
                freedom bent over backward.
            settled: continue until the joints are at rest, as on release; otherwise the time of a step is limited.

        Raises:
            RigError: if the armature or one of its bones has been deleted during the drag.
        """
        try:
            is_there = self._armature.pose.bones.keys() == self._bones
        except ReferenceError:
            is_there = False
        if not is_there:
            # Undo or another window may have removed bones.
            raise armatures.RigError(
                f"The armature of bone {next(iter(self._dragged))!r} was changed during the drag: drag again"
            )
        self._asked = location, turn, depth
        armature_shift, armature_turn = self._armature_shift(location), self._armature_turn(turn)
        if np.abs(armature_shift).max() <= self._least_shift and np.linalg.norm(armature_turn) <= _LEAST:
            self._keeper.restore()
            for part in (*self._parts, *self._turning_parts):
                part.session.begin(part.tree.rotations, part.tree.root_location)
            self.result = StepResult()
            return self.result
        armature_depth = None
        if depth is not None and self._has_soft_depth:
            armature_depth = np.linalg.solve(self._world[:3, :3], np.asarray(depth, dtype=np.float64))
            armature_depth /= np.linalg.norm(armature_depth)
        results = list[StepResult]()
        parts = self._parts if turn is None else self._turning_parts
        for part, last in zip(parts, self._last_parts, strict=True):
            part.session.continue_from(last.session.rotations, last.session.location)
        self._last_parts = parts
        for part, writer in zip(parts, self._writers, strict=True):
            pose, result = part.solve(armature_shift, armature_turn, depth=armature_depth, settled=settled)
            writer.write(pose.rotations, pose.root_location)
            results.append(result)
        worst = int(np.argmax([result.error for result in results]))
        self.result = StepResult(
            results[worst].error,
            max(result.pin_error for result in results),
            any(result.is_catching_up for result in results),
            results[0].deeper,
            parts[worst].problem.why_short(parts[worst].session),
        )
        return self.result

    def keep_orientation(self, context: Context, *, keep: bool) -> None:
        """Set whether dragged feet and heads keep their orientation from now on.

        The next step continues from the current pose.
        """
        self._keeper.restore()
        context.view_layer.update()
        self._setup.settings = replace(self._setup.settings, keep_orientation=keep)
        self._parts = self._setup.parts(turning=False)

    def finish(self, context: Context) -> int:
        """Keep the pose: key the changes if auto-keying is on, and move the pins of the dragged bones.

        Moves a live rig's targets to the pose. Returns the number of changed bones.
        """
        if self._asked is not None:
            shown = self.step(*self._asked, settled=True).error
            context.view_layer.update()
            self._correct(shown, *self._asked)
        self.left_alone += [sentence for writer in self._writers for sentence in writer.settle()]
        self.left_alone += [sentence for part in self._last_parts for sentence in part.problem.too_short()]
        changed = {key: values for writer in self._writers for key, values in writer.held.changed().items()}
        switched = {path: value for writer in self._writers for path, value in writer.switched().items()}
        note_posed(self._armature, changed, switched)
        if changed and is_auto_keying(context):
            keyed, why = list[str](), ""
            try:
                keyed = key_channels(context, self._armature, changed, automatic=True, before=changed)
            except KeyframeError as error:
                # Other bones may have got keys, so the pose stays.
                why = str(error)
            locked = locked_note(self._armature, changed, switched)
            if keyed or why:
                for writer in self._writers:
                    writer.key_switches(context)
                forget_posed(self._armature, [*keyed, *switched])
                why = why or unkeyed_note(context, self._armature, changed)
            elif not locked:
                why = why_no_key(context, automatic=True)
            self.left_alone += filter(None, [locked, why])
        effectors.move_pins_with(self._armature, self._dragged)
        if rig_settings(self._armature).live:
            try:
                snap_targets(context, self._armature)
            except armatures.RigError:
                # None of the targets can be moved, so Live determines the pose.
                live.resume(self._armature)
        return len({bone for bone, _ in changed})

    def _correct(self, shown: float, *asked: npt.ArrayLike | None) -> None:
        """Move an elbow or knee closer to its target if IK stretches its limb; stop if a step brings it no closer.

        shown: the error of the dragged point during the drag, in world meters. Larger errors are reported.
        """
        shift = self._armature_shift(asked[0])
        for part in self._last_parts:
            extent, error, before, worst = part.tree.skeleton.extent, np.inf, part.ik_offsets, 0
            for left in range(_CORRECTIONS, -1, -1):
                here = part.points_on_ik()
                errors = np.nan_to_num(np.linalg.norm(part.targets(shift) - here, axis=1))
                if errors.max() >= error:
                    part.ik_offsets = before
                    self.step(*asked, settled=True)
                    break
                error, worst, offsets = float(errors.max()), int(errors.argmax()), part.offsets_from(here)
                if not left or np.linalg.norm(offsets - part.ik_offsets, axis=1).max() < PLACED * extent:
                    break
                before, part.ik_offsets = part.ik_offsets, offsets
                self.step(*asked, settled=True)
            if self._scale * error > shown + _NAMED * self._scale * most_off(extent):
                bone, by = part.grips[worst].effector.bone, armatures.length_text(self._scale * error)
                bone = self._setup.posed.shown(bone)
                self.left_alone.append(f"Bone {bone!r} ends {by} from its target, farther than during the drag")

    def cancel(self) -> None:
        """Restore everything exactly, including the pins; live posing continues."""
        try:
            super().cancel()
            _put_back(self.moved_pins)
        finally:
            live.resume(self._armature)


# A pin, and its goal and `seen` before it was moved.
_MovedPin: TypeAlias = tuple[FabrikEffector, Pin, tuple[float, ...]]


def _put_back(moved: Sequence[_MovedPin]) -> None:
    for pin, goal, seen in moved:
        (pin.pin_location, pin.pin_rotation), pin.seen = goal, seen


def begin_drag(
    context: Context, armature: Object, bone: str, *, point: str = "TAIL", settings: DragSettings | None = None
) -> Drag:
    """Start dragging a bone's "TAIL" or "HEAD"; no bone moves yet.

    With X-mirror, the bone on the other side is dragged too, with mirrored translations. Live posing of the rig pauses
    until the drag is finished or canceled. Without Live, a pin moves to its bone if something else has posed the bone
    since; `cancel` moves the pin back. Raises FabrikError, with the scene unchanged, if the bone can't be dragged.
    """
    if is_auto_keying(context):
        check_action(armature, new=False, tweaked=True)
    context.view_layer.update()
    is_live, setup = rig_settings(armature).live, DragSetup(armature, bone, point, settings or DragSettings())
    # Live posing holds pins where they are.
    moved: list[_MovedPin] = []
    for pin in () if is_live else effectors.pins_left_behind(armature):
        moved.append((pin, pin_of(pin), tuple(pin.seen)))
        effectors.set_pin(pin, armature.pose.bones[pin.bone])
    if is_live:
        live.pause(armature)
    try:
        drag = Drag(context, setup)
    except BaseException:
        _put_back(moved)
        live.resume(armature)
        raise
    drag.moved_pins = moved
    held = [pin.shown_bone for pin, *_ in moved if pin.bone not in setup.dragged]
    if held and not drag.notice:
        drag.notice = f"Bones have moved, so their pins were moved to them: {first_few(held)}"
    return drag
