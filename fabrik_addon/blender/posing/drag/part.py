"""One connected part of a rig that follows a drag: the bones below one bone, their pose, and their solver."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import bpy
import numpy as np
from mathutils import Quaternion

from ....core import Effector, forward_kinematics
from ....core.arrays import FloatArray
from ....core.drag import DragSolver
from ....core.kernel.hanging import HangFrom
from ....core.model.skeleton import Skeleton
from ...control.posed_rig import posed_rig
from ...goals.goals import limits_of
from ...goals.loops import turning_bones
from ...goals.support import floor_of, up_of
from ...rig.armature import Tree
from ...rig.posture_masses import masses_of, trunk_of_animal
from ..posture_session import make_solver
from ..stored_pose import preferred_pose

# A nearly taut rope ends short of its pull (1.4 mm of a metre): the root moves by this share farther.
_SLACK = 0.02
# The cost of bending the trunk of an animal that is moved as a whole. Pinned, and with its hips lowered by 10 cm, a
# wolf's front legs become 0 % shorter with 1, 7 % with 100, 13 % with 1000; its hind legs 14 %. A horse's 0, 7 and 17
# %; hind legs 17 %.
_STIFF = 1000.0


@dataclass(frozen=True)
class Grip:
    """A point of a bone and its target.

    Attributes:
        effector: the point, for the solver.
        armature_position: (3,) its target at the drag's start.
        armature_rotation: (4,) the target rotation of its bone then, if the effector's rotation counts.
        shift_factors: (3,) factors on the drag's translation: zeros for held points, (-1, 1, 1) for a mirrored point.
        is_pin: whether it is a pin of the user; an IK control that holds a limb is not.
    """

    effector: Effector
    armature_position: FloatArray
    armature_rotation: FloatArray = field(default_factory=lambda: np.array((1.0, 0.0, 0.0, 0.0)))
    shift_factors: FloatArray = field(default_factory=lambda: np.zeros(3))
    is_pin: bool = True

    @property
    def is_dragged(self) -> bool:
        """Whether the grip is dragged rather than held."""
        return bool(self.shift_factors.any())


@dataclass(frozen=True)
class PartPose:
    """The pose of a part.

    local_rotations: (J, 4). armature_head: (3,) the top bone's. error, pin_error: distances of dragged and held points
    from their targets, armature units. is_on_the_way: whether solving again continues. deeper: how much farther along
    the depth the first grip is than its target.
    """

    local_rotations: FloatArray
    armature_head: FloatArray
    error: float
    pin_error: float
    is_on_the_way: bool
    deeper: float = 0.0


class DragPart:
    """The bones from one bone down, prepared once, to be solved for every move of the mouse.

    Attributes:
        tree: the bones.
        grips: dragged and held points.
        on_the_way: names of the bones whose rotation moves a grip.
        turned: those that may rotate, as indices in the skeleton.
        written: those and the joints of limbs without goals.
        moves_root: whether the top bone may move as well.
    """

    def __init__(
        self,
        armature: bpy.types.Object,
        tree: Tree,
        grips: Sequence[Grip],
        frozen: Collection[str],
        root: str,
        *,
        follows: bool,
        hangs: bool,
        left: Collection[str] = (),
    ) -> None:
        """Prepare the part.

        Args:
            armature: the object of the tree.
            tree: the bones that may follow, from `tree_below`.
            grips: dragged and held points.
            frozen: bones that keep their local rotation.
            root: "FIXED", "FREE" or "FOLLOW". A root that follows like a rope would leave its pins, so with pins it is
                free.
            follows: whether limbs without goals follow, and stay above the floor.
            hangs: whether they then hang.
            left: bones of limbs whose IK brings them to where they are held: solved, but not written.
        """
        self.tree, self.grips, self.moves_root = tree, tuple(grips), root != "FIXED"
        is_rope = root == "FOLLOW" and all(grip.is_dragged for grip in grips)
        turned = {bone for grip in grips for bone in turning_bones(tree.skeleton, grip.effector)}
        self.on_the_way = {tree.skeleton.names[bone] for bone in turned}
        self.turned = sorted(tree.skeleton.index(name) for name in self.on_the_way if name not in frozen)
        free = _free_joints(armature, tree, {*self.on_the_way, *frozen}, hangs=hangs) if follows else []
        self._solved = sorted([*self.turned, *free])
        self.written = [bone for bone in self._solved if tree.skeleton.names[bone] not in left]
        self._positions = np.array([grip.armature_position for grip in grips])
        self._shift_factors = np.array([grip.shift_factors for grip in grips])
        self._dragged = self._shift_factors.any(axis=1)
        self._pins = ~self._dragged & np.array([grip.is_pin for grip in grips])
        self._oriented = any(grip.effector.rotation_weight > 0.0 for grip in grips)
        self._ropes = _ropes(tree.skeleton, grips) if is_rope else []
        self._heads = forward_kinematics(tree.skeleton, tree.rotations, tree.root_location)[:, :3, 3]
        start = self.tree.rotations, self.tree.root_location
        self._preferred = preferred_pose(armature, self.tree, *start, bones=self.turned, moves_root=self.moves_root)
        # People bend over their feet. An animal's trunk is carried at both ends, and moves as one piece.
        leads = any(grip.is_dragged and grip.effector.bone == tree.skeleton.names[0] for grip in grips)
        self._trunk = trunk_of_animal(armature) if leads and self.moves_root and not self._ropes else []
        self.session = self._begun(armature, follows=follows, hangs=hangs)

    def _begun(self, armature: bpy.types.Object, *, follows: bool, hangs: bool) -> DragSolver:
        """The solver of the part, started in the current pose."""
        tree = self.tree
        names = [tree.skeleton.names[bone] for bone in self._solved]
        session = make_solver(
            armature,
            tree.skeleton,
            [grip.effector for grip in self.grips],
            limits=limits_of(armature, names),
            still=set(tree.skeleton.names) - set(names),
            root="FREE" if self.moves_root and not self._ropes else "FIXED",
            preferred=self._preferred,
            pinned=[grip.effector.bone for grip in self.grips if grip.is_pin and not grip.is_dragged],
            locks=posed_rig(armature).locks(tree.skeleton, self.turned, tree.rotations),
            hang_from=HangFrom(tree.rotations, tree.root_location, up_of(armature)[0], hangs) if follows else None,
        )
        if self._trunk:
            masses = session.masses
            bending = np.ones(len(tree.skeleton.names)) if masses.bending is None else masses.bending
            factors = np.where([name in self._trunk for name in tree.skeleton.names], _STIFF, 1.0)
            session.masses = replace(masses, bending=bending * factors)
            session.prefer(*self._preferred)
        session.begin(tree.rotations, tree.root_location)
        return session

    def solve(
        self,
        armature_shift: FloatArray,
        armature_turn: Quaternion,
        *,
        depth: FloatArray | None = None,
        settled: bool = False,
    ) -> PartPose:
        """The pose after the dragged points are translated by (3,) and their bones rotated, both in armature space.

        depth: (3,) the unit direction along which the translation is free.
        """
        targets = self._positions + self._shift_factors * armature_shift
        target_rotations = np.array([_turned(grip, armature_turn) for grip in self.grips]) if self._oriented else None
        if self._ropes:
            pulls = [pull_rope(self._heads[joints], point, targets[grip]) for grip, joints, point in self._ropes]
            location = self.tree.root_location + np.asarray((1.0 + _SLACK) * np.mean(pulls, axis=0))
            self.session.prefer(self._preferred[0], location)
            self.session.go_on_from(self.session.rotations, location)
        if self._trunk:
            self.session.prefer(self._preferred[0], self._preferred[1] + self._shift_factors[0] * armature_shift)
        undecided = None if depth is None else np.where(self._shift_factors, self._shift_factors * depth, 0.0)
        found = self.session.solve(targets, target_rotations, undecided=undecided, eased=not settled, settled=settled)
        error, pin_error = (found.errors[chosen].max(initial=0.0) for chosen in (self._dragged, self._pins))
        deeper = 0.0
        if depth is not None:
            reached = self.session.points(found.rotations, found.root_location)[0]
            deeper = float((reached - targets[0]) @ depth)
        return PartPose(found.rotations, found.root_location, error, pin_error, found.is_held_back, deeper)


def pull_rope(joints: FloatArray, end: FloatArray, target: FloatArray) -> FloatArray:
    """(3,) movement of the first of joints (N, 3) when the end (3,) of the chain is pulled to a target (3,)."""
    pulled, last = target, end
    for joint in joints[::-1]:
        length = np.linalg.norm(last - joint)
        away = joint - pulled
        distance = np.linalg.norm(away)
        pulled, last = pulled + away * (length / distance if distance > 0.0 else 0.0), joint
    return np.asarray(pulled - joints[0])


def _turned(grip: Grip, turn: Quaternion) -> Sequence[float]:
    """(4,) the rotation of a grip's bone after the dragged bone has been rotated; mirrored if the translation is."""
    if not grip.is_dragged:
        return grip.armature_rotation.tolist()
    side = grip.shift_factors[0]
    own = Quaternion((turn.w, turn.x, side * turn.y, side * turn.z))
    return (own @ Quaternion(grip.armature_rotation.tolist()))[:]


def _free_joints(armature: bpy.types.Object, tree: Tree, led: Collection[str], *, hangs: bool) -> list[int]:
    """The joints, as indices in the skeleton, of limbs without goals, which hang or rest on the floor.

    None for control rigs, whose limbs follow their own rules.
    """
    posed = posed_rig(armature)
    led = {*led, *posed.of_limbs}
    names, shares, floor = tree.skeleton.names, masses_of(armature, tree.skeleton).hanging, floor_of(armature)
    limbs = set() if shares is None else {names[bone] for bone in np.flatnonzero(shares)}
    lowest = set() if floor is None else {bone for bone, _ in floor.points}
    free = [bone for bone, name in enumerate(names) if name not in led and name in limbs | lowest]
    return sorted(set(free) - posed.locks(tree.skeleton, free, tree.rotations).keys()) if hangs or floor else []


def _ropes(skeleton: Skeleton, grips: Sequence[Grip]) -> list[tuple[int, list[int], FloatArray]]:
    """For each dragged point its index among the grips, the bones from the root to it, and its position."""
    return [
        (row, [int(bone) for bone in skeleton.path(skeleton.index(grip.effector.bone))], grip.armature_position)
        for row, grip in enumerate(grips)
        if grip.is_dragged
    ]
