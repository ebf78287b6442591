"""The goals of a rig, tree by tree, as input for the solver."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import bpy
import numpy as np

from ...core import Effector, Fixed, Solver
from ...core.arrays import BoolArray
from ...core.limits.base import Limit
from ..control.posed_rig import posed_rig
from ..rig.armature import RigError, Tree, check_unscaled, cut_tree, freeze
from ..rig.stretch import solved_slides, stretched
from ..settings.limit_properties import read_limits
from ..settings.markers import FabrikMarker
from ..settings.rig import FabrikEffector, rig_settings
from ..settings.why_not import enabled_effectors
from .effectors import (
    Partner,
    Pin,
    Target,
    bend_of,
    carrying_bone,
    close_loops,
    closes,
    core_effector,
    goal_of,
    turning_bones,
)


@dataclass(frozen=True)
class Goals:
    """The effectors of one tree of bones and their targets.

    Attributes:
        tree: the bones and their pose.
        names: E effector names, to show.
        effectors: E points on bones, for the solver.
        targets: E objects, each with the name of its bone or "" for the object itself; or pins; or, for effectors that
            close loops, the points of other bones.
        limits: by name, those of the bones to be solved.
        slides: by name, the length factors of bones that may stretch.
        bends: E objects, with bones as above, that are poles of limbs; None without a pole.
        held: bones between root and effectors that may not rotate, with the reason.
        carrier: the bone to which the tree is attached and that something else moves; "" for the armature itself.
            Positions are then in the rest space of that bone.
        root_moves: whether a free root may move at all.
    """

    tree: Tree
    names: tuple[str, ...]
    effectors: tuple[Effector, ...]
    targets: tuple[Target | Pin | Partner, ...]
    limits: Mapping[str, Limit] = field(default_factory=dict)
    bends: tuple[Target | None, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    carrier: str = ""
    root_moves: bool = True
    slides: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def turned_by(self) -> BoolArray:
        """(E, J) whether rotating a bone, if it may rotate, moves an effector."""
        skeleton = self.tree.skeleton
        turned = np.zeros((len(self.effectors), len(skeleton)), dtype=bool)
        for row, effector in zip(turned, self.effectors, strict=True):
            row[sorted(turning_bones(skeleton, effector))] = True
        turned[:, [name in self.held for name in skeleton.names]] = False
        return turned

    @cached_property
    def bones(self) -> list[int]:
        """The bones to be solved, as indices in the skeleton: those whose rotation moves an effector."""
        return [int(bone) for bone in np.flatnonzero(self.turned_by.any(axis=0))]

    @property
    def pinned(self) -> list[str]:
        """The bones that are pinned."""
        pairs = zip(self.effectors, self.targets, strict=True)
        return [effector.bone for effector, target in pairs if isinstance(target, Pin)]

    @property
    def bone_names(self) -> list[str]:
        """The names of the bones to be solved."""
        return [self.tree.skeleton.names[bone] for bone in self.bones]

    @property
    def left_alone(self) -> list[str]:
        """Notes on the bones between root and effectors that are not rotated."""
        return [f"Bone {name!r} was not changed: {reason}" for name, reason in self.held.items()]

    def solver(self, *, free_root: bool) -> Solver:
        """The solver for these effectors, inside the limits."""
        root = "FREE" if free_root and self.root_moves else "FIXED"
        return Solver(self.tree.skeleton, self.effectors, limits=self.all_limits, slides=self.slides, root=root)

    def around(self, tree: Tree, locked: Collection[str]) -> "Goals":
        """Copy these goals for a tree in another pose; the bones in `locked` may not rotate."""
        held = {**self.held, **dict.fromkeys(locked, "its rotation is locked")}
        limits = {name: limit for name, limit in self.limits.items() if name not in locked}
        return replace(self, tree=tree, held=held, limits=limits)

    def pins_first(self) -> "Goals":
        """Copy these goals so that pins are met before targets of the same priority."""
        pairs = zip(self.effectors, self.targets, strict=True)
        ranks = [2 * effector.priority + (not isinstance(target, Pin)) for effector, target in pairs]
        ranked = zip(self.effectors, ranks, strict=True)
        return replace(self, effectors=tuple(replace(effector, priority=rank) for effector, rank in ranked))

    @property
    def all_limits(self) -> dict[str, Limit]:
        """The limits, including fixed ones for the bones that may not rotate."""
        return {**self.limits, **{name: Fixed() for name in self.held}}


def gather_goals(
    rig: bpy.types.Object,
    wanted: Sequence[FabrikEffector | FabrikMarker] | None = None,
    *,
    baked: bool = False,
) -> list[Goals]:
    """The enabled effectors, tree by tree; trees without any are left out. Pose and limits are the current ones.

    wanted: markers, or some of the effectors, instead of all effectors. They must have passed `check_effectors` or
    `check_followed`. baked: the goals are those of a bake. Raises RigError if no bone can move any of them, and
    LimitPropertyError for an invalid limit.
    """
    enabled = enabled_effectors(rig) if wanted is None else wanted
    posed = posed_rig(rig)
    owned = posed.owned
    held = {**posed.frozen, **owned}
    partners = [closes(rig, effector) for effector in enabled]
    ends = {effector.bone for effector in enabled} | {each.bone for each in partners if each is not None}
    goals = []
    for tree, carrier in (part for whole in posed.trees() for part in cut_tree(whole, owned, ends)):
        own = [effector for effector in enabled if effector.bone in tree.skeleton.names]
        if own:
            goals.append(_goals_of(rig, tree, carrier, own, held, baked=baked))
    moved = [goal for goal in goals if goal.bones]
    if not moved:
        raise RigError(_why_nothing_moves(rig, goals))
    # A target moved by bones that have targets would run away forever.
    solved = {name for goal in moved for name in goal.bone_names}
    for goal in moved:
        for target in (*goal.targets, *goal.bends):
            bone = "" if target is None or isinstance(target, (Pin, Partner)) else carrying_bone(rig, *target)
            if bone and solved.intersection([bone, *(above.name for above in rig.pose.bones[bone].parent_recursive)]):
                raise RigError(f"The target at bone {bone!r} moves with bones that reach for targets: choose another")
    return moved


def _goals_of(
    rig: bpy.types.Object,
    tree: Tree,
    carrier: str,
    own: Sequence[FabrikEffector | FabrikMarker],
    held: Mapping[str, str],
    *,
    baked: bool,
) -> Goals:
    """The goals of one tree, including limits."""
    skeleton = tree.skeleton
    partners = [closes(rig, effector) for effector in own]
    effectors = close_loops(skeleton, [core_effector(effector) for effector in own], partners, held)
    closed = [effector.target_bone is not None for effector in effectors]
    ends = {name for effector in effectors for name in (effector.bone, effector.target_bone) if name}
    on_way = {bone for name in ends for bone in skeleton.path(skeleton.index(name))}
    check_unscaled(rig, [skeleton.names[bone] for bone in on_way])
    here = {name: held[name] for bone, name in enumerate(skeleton.names) if bone in on_way and name in held}
    root = rig.pose.bones[skeleton.names[0]]
    goals = Goals(
        freeze(tree, here),
        tuple(effector.name for effector in own),
        tuple(effectors),
        tuple(
            partner if partner is not None and loop else goal_of(effector)
            for effector, partner, loop in zip(own, partners, closed, strict=True)
        ),
        bends=tuple(bend_of(each) for each in own),
        held=here,
        carrier=carrier,
        root_moves=root.name not in here and posed_rig(rig).may_move(root.name),
    )
    # A loop needs bones that can close and open it, and cannot have a target rotation.
    for name, effector, turned in zip(goals.names, goals.effectors, goals.turned_by, strict=True):
        if effector.target_bone is None:
            continue
        if effector.rotation_weight > 0.0:
            raise RigError(
                f"Target {name!r} can't copy the rotation of {effector.target_bone!r}, a bone of the "
                "same rig: turn Rotation off"
            )
        if effector.target_bone == effector.bone or not turned.any():
            raise RigError(f"Target {name!r}: its object moves with bone {effector.bone!r}: choose another")
    by_markers = any(isinstance(each, FabrikMarker) for each in own)
    slides = {} if by_markers else solved_slides(rig, goals.bone_names)
    tree = stretched(rig, goals.tree, except_for=slides)
    return replace(goals, tree=tree, limits=limits_of(rig, goals.bone_names, baked=baked), slides=slides)


def limits_of(rig: bpy.types.Object, names: Sequence[str], *, baked: bool = False) -> dict[str, Limit]:
    """The limits of bones by name; a free bone that is a hinge by its locks, or its limb's IK, has a hinge limit.

    baked: for a bake, in which other limbs stay on IK than in a pose.
    """
    limits, posed = read_limits(rig, names), posed_rig(rig)
    for name in (name for name in names if name not in limits):
        hinge = posed.hinge(name, baked=baked)
        if hinge is not None:
            limits[name] = hinge
    return limits


def _why_nothing_moves(rig: bpy.types.Object, goals: Sequence[Goals]) -> str:
    """Why none of the effectors can be moved."""
    alone = [sentence for goal in goals for sentence in goal.left_alone]
    if alone:
        return f"No bone that can rotate moves a target or pin of {rig.name!r} ({alone[-1]}): choose other bones"
    return f"The targets and pins of {rig.name!r} are at the root's head, which no bone can move: choose others"


def root_mode(
    armature: bpy.types.Object, *, pinned: bool, dragged: str = "", top: str = "", setting: str | None = None
) -> str:
    """How the root of a tree moves: "FIXED", "FREE", or "FOLLOW", as if pulled by a rope.

    Args:
        armature: the rig.
        pinned: whether anything of the tree is pinned.
        dragged: the dragged bone, "" for none.
        top: the uppermost bone that follows it.
        setting: instead of the rig's own.
    """
    chosen: str = setting or rig_settings(armature).root
    if chosen == "AUTO":
        return "FREE" if pinned or (dragged and dragged == top) else "FIXED"
    # A root that follows like a rope would leave its pins.
    return "FREE" if chosen == "FOLLOW" and (pinned or dragged in {"", top}) else chosen


def moves_root(armature: bpy.types.Object, goals: Goals) -> bool:
    """Whether solving may move the root of a tree."""
    return goals.root_moves and root_mode(armature, pinned=bool(goals.pinned)) != "FIXED"
