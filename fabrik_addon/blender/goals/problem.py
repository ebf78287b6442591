"""Makes the problem for a solver from a rig: goals, pins, locks, limits, root, floor, support and capsules."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any, Final

import numpy as np
from bpy.types import Object

from ...core import Effector, Fixed, Hinge, Solver
from ...core.arrays import BoolArray, FloatArray
from ...core.drag import DragSolver
from ...core.edit import EditModel
from ...core.errors import first_few
from ...core.kernel.relaxed import HangFrom
from ...core.limits import Limit
from ...core.model.skeleton import Skeleton
from ...core.rotations import rotation_vector_from_quaternion
from ...human.masses import LEADS_WITH
from ..control.posed_rig import PosedRig, posed_rig
from ..control.writer import LimbOnIk
from ..rig import armature as armatures
from ..rig.pose_writer import WithLocks
from ..settings.limit_properties import read_limits
from ..settings.limit_values import AXES
from ..settings.rig import rig_settings
from ..settings.why_not import enabled_effectors
from .body import collision_of, floor_of, masses_of, part_of, side_bends, support_of
from .effectors import (
    Followed,
    Goal,
    Partner,
    Pin,
    Target,
    close_loops,
    core_effector,
    loop_partner,
    pin_of,
    rotating_bones,
    target_bone_of,
    targets_in,
)

# Radians. A joint is not a hinge if it is rotated by more than this about another axis than its hinge's.
_OFF_AXIS: Final = 0.035
# Radians. Hinges are widened by multiples of this, so that errors of IK don't widen them with every solve.
_BEND_STEP: Final = 1e-3


@dataclass(frozen=True)
class RigProblem:
    """One tree of a rig to be solved: points with goals, the bones that may rotate, and their restrictions.

    Solve, Live and bakes make problems with `find_problems`; drags, edits over time and retargets with `rig_problem`.

    Attributes:
        posed: the rig.
        tree: the bones and their pose.
        effectors: E points on bones, for the solver.
        bones: the bones to be solved, as indices in the skeleton.
        free_root: whether the root moves.
        limits: the limits of the bones to be solved, by name.
        held: bones between root and effectors that may not rotate, with the reasons.
        slides: the ranges of length factors of bones that may stretch, by name.
        pinned: the bones that are pinned.
        staying: limbs whose ends IK keeps in place. Their bones are solved but not written.
        names: the names to show of the effectors from a list, which are the first ones; empty if there is no list.
        targets: E objects, each with the name of its bone or "" for the object itself, or pins, or, for closed loops,
            points of other bones.
        bends: E poles of limbs, in the form of `targets`; None without a pole.
        carrier: the bone to which the tree is attached and that something else moves; "" for the armature itself.
            Positions are then in the rest space of that bone.
    """

    posed: PosedRig
    tree: armatures.Tree
    effectors: tuple[Effector, ...]
    bones: Sequence[int]
    free_root: bool
    limits: Mapping[str, Limit]
    held: Mapping[str, str] = field(default_factory=dict)
    slides: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    pinned: tuple[str, ...] = ()
    staying: tuple[LimbOnIk, ...] = ()
    names: tuple[str, ...] = ()
    targets: tuple[Goal, ...] = ()
    bends: tuple[Target | None, ...] = ()
    carrier: str = ""

    @cached_property
    def turned_by(self) -> BoolArray:
        """(E, J) whether rotating a bone, if it may rotate, moves an effector."""
        return _turned_by(self.tree.skeleton, self.effectors, self.held)

    @property
    def rig(self) -> Object:
        """The armature object."""
        return self.posed.rig

    @property
    def bone_names(self) -> list[str]:
        """The names of the bones to be solved."""
        return [self.tree.skeleton.names[bone] for bone in self.bones]

    @property
    def written(self) -> list[int]:
        """The solved bones that get a pose, as indices in the skeleton."""
        left_to_ik = {bone for limb in self.staying for bone in limb.bones}
        return [bone for bone in self.bones if self.tree.skeleton.names[bone] not in left_to_ik]

    @property
    def left_alone(self) -> list[str]:
        """Notes on the bones between root and effectors that are not rotated."""
        return [f"Bone {name!r} was not changed: {reason}" for name, reason in self.held.items()]

    def too_short(self) -> list[str]:
        """A sentence, in a list, about limbs on IK that the body moved away from their controls; else an empty list."""
        apart, scale = dict[str, float](), armatures.meters_per_unit(self.rig)
        for limb in self.staying:
            (end,) = limb.goes_by
            if (distance := scale * limb.missing) > armatures.SHOWN:
                apart[self.posed.shown(end)] = distance
        by = armatures.length_text(max(apart.values(), default=0.0))
        return [f"Limbs too short to reach their IK controls (up to {by} short): {first_few(apart)}"] if apart else []

    @property
    def all_limits(self) -> dict[str, Limit]:
        """The limits, including fixed ones for the bones that may not rotate."""
        return {**self.limits, **{name: Fixed() for name in self.held}}

    def locks(self, rotations: FloatArray) -> dict[int, WithLocks]:
        """The locks of the solved bones, by index in the skeleton, relative to local rotations (J, 4)."""
        return self.posed.locks(self.tree.skeleton, self.bones, rotations)

    def pins_first(self) -> "RigProblem":
        """Copy this problem so that pins are met before targets of the same priority."""
        pairs = zip(self.effectors, self.targets, strict=True)
        ranks = [2 * effector.priority + (not isinstance(target, Pin)) for effector, target in pairs]
        ranked = zip(self.effectors, ranks, strict=True)
        return replace(self, effectors=tuple(replace(effector, priority=rank) for effector, rank in ranked))

    def solver(self) -> Solver:
        """A solver for many frames, or for targets far from the current pose; it ignores masses."""
        root = "FREE" if self.free_root else "FIXED"
        return Solver(self.tree.skeleton, self.effectors, limits=self.all_limits, slides=self.slides, root=root)

    def drag_solver(
        self,
        *,
        locks: Mapping[int, WithLocks] | None = None,
        hang_from: HangFrom | None = None,
        stiff: Collection[str] = (),
        separate: bool = False,
    ) -> DragSolver:
        """A solver that continues from pose to pose, near a preferred pose, which must be set before use.

        Masses, floor, balance and self-collision are the rig's. hang_from: the pose whose tilts are kept by limbs
        without goals; None if such limbs are rigid. stiff: names of bones that move as one piece. separate: whether
        self-collisions of the preferred pose are removed.
        """
        rig, skeleton = self.rig, self.tree.skeleton
        # All goals that move the body get the force of the weakest one, so that no goal pulls another off its target.
        leading = [each.bone not in self.pinned and each.target_bone is None for each in self.effectors]
        forces = [LEADS_WITH.get(part_of(rig, each.bone), 1.0) for each in compress(self.effectors, leading)]
        force = min(forces, default=1.0)
        effectors = [
            replace(each, weight=each.weight * force) if leads else each
            for each, leads in zip(self.effectors, leading, strict=True)
        ]
        return DragSolver(
            skeleton,
            effectors,
            masses_of(rig, skeleton, stiff),
            limits=self.all_limits,
            still={*skeleton.names}.difference(self.bone_names, self.held),
            root="FREE" if self.free_root else "FIXED",
            # Limbs that IK keeps in place do not move with the body.
            floor=floor_of(rig, without=self.posed.on_ik.difference(self.bone_names)),
            support=support_of(rig, self.pinned),
            locks=locks,
            hang_from=hang_from,
            collision=collision_of(rig, skeleton, always=separate),
            separate=separate,
            side_bends=side_bends(rig),
        )

    def edit_model(self, *, separate: bool = False) -> EditModel:
        """The model of a change over frames; separate: whether the change removes self-collisions."""
        rig, skeleton = self.rig, self.tree.skeleton
        masses, collision = masses_of(rig, skeleton), collision_of(rig, skeleton, always=separate)
        bones = self.bone_names
        return EditModel(skeleton, self.effectors, masses, self.limits, bones, self.free_root, collision, separate)

    def why_short(self, solver: DragSolver) -> str:
        """The reasons why effectors miss their targets in a solver's pose, as text; "" if there are none."""
        holder = solver.blocking_constraint()
        if holder is None:
            return ""
        shown, own = self.posed.shown, [each for each in enabled_effectors(self.rig) if each.bone == holder.bone]
        pin = next((each.shown_bone for each in own if each.kind == "PIN"), "")
        # Planted feet and the ends of limbs on IK have goals, but no targets.
        held = f"{shown(holder.bone)} is held by its target" if own else f"{shown(holder.bone)} is held in place"
        return {
            "LIMIT": f"{shown(holder.bone)} is at its limit",
            "GOAL": f"{pin} is pinned" if pin else held,
            "FLOOR": f"{shown(holder.bone)} is on the floor",
            "BALANCE": "the body keeps its balance",
            "BODY": f"{shown(holder.bone)} touches {shown(holder.other)}",
            "REACH": "out of reach",
        }[holder.kind]


def rig_problem(
    posed: PosedRig,
    tree: armatures.Tree,
    effectors: Sequence[Effector],
    bones: Sequence[int],
    *,
    free_root: bool,
    baked: bool = False,
    poses: FloatArray | None = None,
    **more: Any,
) -> RigProblem:
    """A problem with the limits of the bones to be solved.

    baked: for a bake, in which other limbs stay on IK. poses: (F, J, 4) local rotations that hinges of locks and IK
    must allow; by default those of the tree. more: other attributes. Raises LimitPropertyError for an invalid limit.
    """
    names = [tree.skeleton.names[bone] for bone in bones]
    limits = read_limits(posed.rig, names)
    # A free bone has a hinge limit if its locks or its limb's IK make it a hinge.
    for bone, name in [pair for pair in zip(bones, names, strict=True) if pair[1] not in limits]:
        hinge = posed.hinge(name, baked=baked)
        if hinge is not None and not baked:
            # IK starts from the channels of its bones, and may have straightened a joint.
            vectors = rotation_vector_from_quaternion((tree.rotations if poses is None else poses)[..., bone, :])
            along = np.array(AXES) == hinge.axis
            if np.linalg.norm(vectors[..., ~along], axis=-1).max() > _OFF_AXIS:
                continue
            below, above = (vectors[..., along] - each for each in (hinge.low, hinge.high))
            low, high = (_BEND_STEP * round(each / _BEND_STEP) for each in (below.min(), above.max()))
            hinge = Hinge(hinge.axis, hinge.low + min(0.0, low), hinge.high + max(0.0, high))
        if hinge is not None:
            limits[name] = hinge
    return RigProblem(posed, tree, tuple(effectors), bones, free_root, limits, **more)


def ends_on_ik(
    skeleton: Skeleton,
    effectors: Iterable[Effector],
    limbs: Iterable[LimbOnIk],
    leading: Collection[str],
    priority: int,
) -> list[tuple[Effector, LimbOnIk]]:
    """The effectors that hold the ends of limbs at their IK controls, each with its limb.

    Args:
        skeleton: the solved bones.
        effectors: those with other goals. Limbs with such goals on their bones, or below, are not held.
        limbs: see `held_by_ik`.
        leading: dragged bones, or bones with targets.
        priority: that of the limbs. Limbs that leading bones carry give way to those.
    """
    names, found = skeleton.names, list[tuple[Effector, LimbOnIk]]()
    led = {names[bone] for each in effectors for bone in skeleton.path(skeleton.index(each.bone))}
    for limb in limbs:
        end = next(iter(limb.goes_by))
        if end in names and led.isdisjoint(limb.bones):
            carried = any(names[bone] in leading for bone in skeleton.path(skeleton.index(end)))
            found.append((Effector(end, offset=armatures.BONE_HEAD, priority=priority + 2 * carried), limb))
    return found


def _turned_by(skeleton: Skeleton, effectors: Sequence[Effector], held: Collection[str]) -> BoolArray:
    """(E, J) whether rotating a bone that is not held moves an effector."""
    turned = np.zeros((len(effectors), len(skeleton)), dtype=bool)
    for row, effector in zip(turned, effectors, strict=True):
        row[sorted(rotating_bones(skeleton, effector))] = True
    turned[:, [name in held for name in skeleton.names]] = False
    return turned


def find_problems(
    rig: Object,
    wanted: Sequence[Followed] | None = None,
    *,
    baked: bool = False,
    limbs: Sequence[LimbOnIk] = (),
    trees: Sequence[armatures.Tree] = (),
) -> list[RigProblem]:
    """The problems of the enabled effectors, one per tree that has any, in the current pose with the current limits.

    wanted: markers, or some of the effectors, instead of all effectors. They must have passed `check_followed`. baked:
    for a bake. limbs: limbs that stay at their IK controls, see `held_by_ik`. trees: the rig's trees in another pose
    than the current one. Raises RigError if no bone can move any of them, and LimitPropertyError for an invalid limit.
    """
    enabled = enabled_effectors(rig) if wanted is None else wanted
    posed = posed_rig(rig)
    owned = posed.owned
    held = {**posed.frozen, **owned}
    ends = {each.bone for effector in enabled for each in (effector, loop_partner(rig, effector)) if each is not None}
    found = []
    for tree, carrier in (part for whole in trees or posed.trees() for part in armatures.cut_tree(whole, owned, ends)):
        skeleton, own = tree.skeleton, [each for each in enabled if each.bone in tree.skeleton.names]
        if not own:
            continue
        partners = [loop_partner(rig, each) for each in own]
        effectors = close_loops(skeleton, [core_effector(effector) for effector in own], partners, held)
        targets: list[Goal] = []
        for each, effector, partner in zip(own, effectors, partners, strict=True):
            if partner is not None and effector.target_bone is not None:
                targets.append(partner)
            elif each.kind == "PIN":
                targets.append(pin_of(each))
            else:
                targets.append((each.target, each.target_bone))
        pinned = tuple(each.bone for each, target in zip(effectors, targets, strict=True) if isinstance(target, Pin))
        # Pins are met before targets with the same priority.
        leading = [each for each, goal in zip(effectors, targets, strict=True) if not isinstance(goal, (Pin, Partner))]
        priority = min(each.priority for each in leading or effectors)
        staying = ends_on_ik(skeleton, effectors, limbs, {each.bone for each in leading}, priority)
        effectors = [*effectors, *(effector for effector, _ in staying)]
        targets += [Pin(tuple(limb.place)) for _, limb in staying]
        sides = {name for effector in effectors for name in (effector.bone, effector.target_bone) if name}
        moving = {bone for name in sides for bone in skeleton.path(skeleton.index(name))}
        armatures.check_unscaled(rig, [skeleton.names[bone] for bone in moving])
        here = {name: held[name] for bone, name in enumerate(skeleton.names) if bone in moving and name in held}
        turned_by = _turned_by(skeleton, effectors, here)
        # A loop needs bones that can open and close it. It cannot have a target rotation.
        for each, effector, turned in zip(own, effectors, turned_by, strict=False):
            if effector.target_bone is None:
                continue
            if effector.rotation_weight > 0.0:
                raise armatures.RigError(
                    f"Target {each.name!r} can't copy the rotation of {effector.target_bone!r}, a bone of the "
                    "same rig: turn Rotation off"
                )
            if effector.target_bone == effector.bone or not turned.any():
                raise armatures.RigError(
                    f"Target {each.name!r}: its object moves with bone {effector.bone!r}: choose another"
                )
        bends = [None if each.bend_target is None else (each.bend_target, each.bend_bone) for each in own]
        bones = np.flatnonzero(turned_by.any(axis=0)).tolist()
        root = skeleton.names[0]
        may_move = root not in here and posed.may_move(root)
        slides = armatures.solved_slides(rig, [skeleton.names[bone] for bone in bones]) if own[0].may_stretch else {}
        problem = rig_problem(
            posed,
            armatures.stretched(rig, armatures.freeze(tree, here), except_for=slides),
            effectors,
            bones,
            free_root=may_move and root_mode(rig, pinned=bool(pinned)) != "FIXED",
            baked=baked,
            held=here,
            slides=slides,
            pinned=pinned,
            staying=tuple(limb for _, limb in staying),
            names=tuple(each.name for each in own),
            targets=tuple(targets),
            bends=(*bends, *(None for _ in staying)),
            carrier=carrier,
        )
        found.append(problem)
    moved = [problem for problem in found if problem.bones]
    if not moved:
        if alone := [sentence for problem in found for sentence in problem.left_alone]:
            raise armatures.RigError(
                f"The bones that could move targets and pins of {rig.name!r} can't rotate ({alone[-1]}): choose "
                "other bones"
            )
        raise armatures.RigError(
            f"The targets and pins of {rig.name!r} are at the root's head, which no bone can move: choose others"
        )
    # A target that follows the bones that it moves would move away forever.
    solved = {name for problem in moved for name in problem.bone_names}
    for problem in moved:
        for target in targets_in((*problem.targets, *problem.bends)):
            bone = target_bone_of(rig, *target)
            if bone and solved.intersection([bone, *(above.name for above in rig.pose.bones[bone].parent_recursive)]):
                raise armatures.RigError(
                    f"The target at bone {bone!r} moves with bones that reach for targets: choose another"
                )
    return moved


def root_mode(armature: Object, *, pinned: bool, dragged: str = "", top: str = "", setting: str | None = None) -> str:
    """How the root of a tree moves: "FIXED", "FREE", or "FOLLOW" (as if pulled by a rope).

    Args:
        armature: the rig.
        pinned: whether any bone of the tree is pinned.
        dragged: the dragged bone, "" for none.
        top: the uppermost bone that follows the dragged one.
        setting: a value instead of the rig's own.
    """
    chosen: str = setting or rig_settings(armature).root
    if chosen == "AUTO":
        return "FREE" if pinned or (dragged and dragged == top) else "FIXED"
    # A root that follows as if pulled by a rope would leave its pins.
    return "FREE" if chosen == "FOLLOW" and (pinned or dragged in {"", top}) else chosen
