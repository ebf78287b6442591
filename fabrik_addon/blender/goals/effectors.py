"""The effectors kept on an armature: making them, checking them, and handing them to the solver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import bpy
import numpy as np
import numpy.typing as npt

from ...core import Effector, Fixed, Solver
from ...core.limits.kinds import Limit
from ..rig.armature import RigError, Tree, check_unscaled
from ..rig.locks import hinge_of_locks
from ..rig.ownership import constrained_bones, unkeyable_bones
from ..rig.stretch import solved_slides, stretched
from ..rig.subtrees import cut_tree, freeze
from ..settings.limit_properties import read_limits
from ..settings.markers import FabrikMarker
from ..settings.rig import FabrikEffector, rig_settings
from ..settings.why_not import enabled_effectors, why_no_solve
from .loops import Partner, carrying_bone, close_loops, partner_of, turning_bones

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Target = tuple[bpy.types.Object, str]


class Pin(NamedTuple):
    """A place in the armature's own space where a point is held, and the rotation (w x y z) of its bone there."""

    location: tuple[float, float, float]
    rotation: tuple[float, float, float, float]


COLLECTION_NAME = "FABRIK Targets"
# A target empty's size, as a share of its bone's length.
_TARGET_SIZE = 0.2


@dataclass(frozen=True)
class Goals:
    """The effectors of one tree of bones and where they are to go.

    Attributes:
        tree: the bones and their pose.
        names: E effector names, for people.
        effectors: E points on bones, for the solver.
        targets: E objects, each with the name of its bone or "" for the object itself; or pins; or, for effectors that
            close loops, the points of other bones.
        limits: those of the bones to be solved, by name.
        slides: those of them that may stretch, with the factors between which they may.
        bends: E objects, with bones as above, that limbs bend toward; None where they bend as they do.
        held: bones between root and effectors that are not to be turned, with the reason.
        carrier: the bone that the tree hangs on and that something else moves; "" for the armature itself. Places are
            then in the space in which that bone is at rest.
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

    @property
    def turned_by(self) -> BoolArray:
        """(E, J) whether turning a bone, one that may be turned, moves an effector."""
        skeleton = self.tree.skeleton
        turned = np.zeros((len(self.effectors), len(skeleton)), dtype=bool)
        for row, effector in zip(turned, self.effectors, strict=True):
            row[sorted(turning_bones(skeleton, effector))] = True
        turned[:, [name in self.held for name in skeleton.names]] = False
        return turned

    @property
    def bones(self) -> list[int]:
        """The bones to be solved, as places in the skeleton: those whose turning moves an effector."""
        return [int(bone) for bone in np.flatnonzero(self.turned_by.any(axis=0))]

    @property
    def bone_names(self) -> list[str]:
        """The same by name."""
        return [self.tree.skeleton.names[bone] for bone in self.bones]

    @property
    def left_alone(self) -> list[str]:
        """Sentences on the bones between root and effectors that are not turned."""
        return [f"Bone {name!r} is left alone: {reason}" for name, reason in self.held.items()]

    def solver(self, *, free_root: bool) -> Solver:
        """The solver for these effectors, inside the limits."""
        root = "FREE" if free_root and self.root_moves else "FIXED"
        return Solver(self.tree.skeleton, self.effectors, limits=self.all_limits, slides=self.slides, root=root)

    @property
    def all_limits(self) -> dict[str, Limit]:
        """The limits, and those of the bones that are not to be turned."""
        return {**self.limits, **{name: Fixed() for name in self.held}}


def check_effectors(scene: bpy.types.Scene, rig: bpy.types.Object) -> None:
    """Raise RigError, naming the trouble, unless the object can be solved for the targets it has."""
    trouble = why_no_solve(rig)
    if trouble:
        raise RigError(trouble)
    for effector in enabled_effectors(rig):
        _check_bone(rig, effector)
        _check_target(scene, rig, effector)


def _check_bone(rig: bpy.types.Object, effector: FabrikEffector) -> None:
    """Raise RigError where the effector's bone is not there, such as after a renaming."""
    if not effector.bone:
        raise RigError(f"Effector {effector.name!r} has no bone: choose one")
    if effector.bone not in rig.pose.bones:
        raise RigError(
            f"Effector {effector.name!r}: {rig.name!r} has no bone {effector.bone!r} (was it renamed?): choose it again"
        )


def _check_target(scene: bpy.types.Scene, rig: bpy.types.Object, effector: FabrikEffector) -> None:
    """Raise RigError where the effector's target, or what it bends toward, is gone or is the rig itself."""
    if effector.kind == "TARGET":
        if effector.target is None:
            raise RigError(f"Effector {effector.name!r} has no target (was it deleted?): choose one")
        _check_object(scene, rig, effector.name, effector.target, effector.target_bone)
    if effector.bend_target is not None:
        _check_object(scene, rig, effector.name, effector.bend_target, effector.bend_bone)


def _check_object(
    scene: bpy.types.Scene, rig: bpy.types.Object, effector: str, target: bpy.types.Object, bone: str
) -> None:
    """Raise RigError where an effector can't go by an object, or by a bone of it."""
    # The effector itself keeps a deleted object in the file, outside of every scene.
    if scene.objects.get(target.name) != target:
        raise RigError(f"Effector {effector!r}: its target {target.name!r} is not in scene {scene.name!r}")
    reason = why_no_target(rig, target, bone)
    if reason:
        raise RigError(f"Effector {effector!r}: {reason}")


def why_no_target(rig: bpy.types.Object, target: bpy.types.Object, bone: str) -> str:
    """What keeps an object, or a bone of it, from being a target of a rig; "" where nothing does."""
    if target == rig and not bone:
        return f"{rig.name!r} can't be its own target: choose another object"
    if bone and target.type != "ARMATURE":
        return f"{target.name!r} is no armature, so has no bone {bone!r}"
    if bone and bone not in target.pose.bones:
        return f"{target.name!r} has no bone {bone!r}"
    return ""


def gather_goals(
    rig: bpy.types.Object, trees: Sequence[Tree], wanted: Sequence[FabrikEffector | FabrikMarker] | None = None
) -> list[Goals]:
    """The enabled effectors, tree by tree; trees without any are left out. Limits are as they are on the present frame.

    wanted: markers, or some of the effectors, in place of them. They must have passed `check_effectors` or
    `check_followed`. Raises RigError where no bone can move any of them, and LimitPropertyError for a limit that makes
    no sense.
    """
    enabled = enabled_effectors(rig) if wanted is None else wanted
    owned, unkeyable = constrained_bones(rig), unkeyable_bones(rig)
    held = {**unkeyable, **owned}
    partners = [closes(rig, effector) for effector in enabled]
    ends = {effector.bone for effector in enabled} | {each.bone for each in partners if each is not None}
    goals = []
    for tree, carrier in (part for whole in trees for part in cut_tree(whole, owned, ends)):
        own = [effector for effector in enabled if effector.bone in tree.skeleton.names]
        if own:
            goals.append(_goals_of(rig, tree, carrier, own, held))
    moved = [goal for goal in goals if goal.bones]
    if not moved:
        raise RigError(_why_nothing_moves(rig, goals))
    _check_not_chased(rig, moved)
    return moved


def closes(rig: bpy.types.Object, effector: FabrikEffector | FabrikMarker) -> Partner | None:
    """The point of one of the rig's own bones that an effector is to reach; None where it is something else."""
    goal = _goal(effector)
    return None if isinstance(goal, Pin) or effector.target is None else partner_of(rig, *goal)


def _check_not_chased(rig: bpy.types.Object, goals: Sequence[Goals]) -> None:
    """Raise RigError, naming it, where a goal is carried by bones that reach for goals: it would run away for ever."""
    solved = {name for goal in goals for name in goal.bone_names}
    for goal in goals:
        for target in (*goal.targets, *goal.bends):
            bone = "" if target is None or isinstance(target, (Pin, Partner)) else carrying_bone(rig, *target)
            if bone and solved.intersection([bone, *(above.name for above in rig.pose.bones[bone].parent_recursive)]):
                raise RigError(f"The target at bone {bone!r} moves with bones that reach for targets: choose another")


def _check_loops(goals: Goals) -> None:
    """Raise RigError for a loop that nothing can close or open, and for one that is to take over a rotation."""
    for name, effector, turned in zip(goals.names, goals.effectors, goals.turned_by, strict=True):
        if effector.target_bone is None:
            continue
        if effector.rotation_weight > 0.0:
            raise RigError(
                f"Effector {name!r} can't take over the rotation of {effector.target_bone!r}, which gives way itself: "
                "switch Take Rotation off"
            )
        if effector.target_bone == effector.bone or not turned.any():
            raise RigError(f"Effector {name!r}: its target moves with bone {effector.bone!r} itself: choose another")


def _goals_of(
    rig: bpy.types.Object,
    tree: Tree,
    carrier: str,
    own: Sequence[FabrikEffector | FabrikMarker],
    held: Mapping[str, str],
) -> Goals:
    """The goals of one tree, limits included."""
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
            partner if partner is not None and loop else _goal(effector)
            for effector, partner, loop in zip(own, partners, closed, strict=True)
        ),
        bends=tuple(_bend(each) for each in own),
        held=here,
        carrier=carrier,
        root_moves=root.name not in here and not all(root.lock_location),
    )
    _check_loops(goals)
    by_markers = any(isinstance(each, FabrikMarker) for each in own)
    slides = {} if by_markers else solved_slides(rig, goals.bone_names)
    tree = stretched(rig, goals.tree, except_for=slides)
    return replace(goals, tree=tree, limits=limits_of(rig, goals.bone_names), slides=slides)


def limits_of(rig: bpy.types.Object, names: Sequence[str]) -> dict[str, Limit]:
    """The limits of bones by name; a free one that is a hinge by its locks counts as one."""
    limits = read_limits(rig, names)
    for name in names:
        hinge = None if name in limits else hinge_of_locks(rig.pose.bones[name])
        if hinge is not None:
            limits[name] = hinge
    return limits


def _bend(effector: FabrikEffector | FabrikMarker) -> Target | None:
    """What the limb of an effector bends toward."""
    if isinstance(effector, FabrikMarker) or effector.bend_target is None:
        return None
    return effector.bend_target, effector.bend_bone


def _goal(effector: FabrikEffector | FabrikMarker) -> Target | Pin:
    """What an effector goes to."""
    if isinstance(effector, FabrikEffector) and effector.kind == "PIN":
        return Pin(tuple(effector.pin_location), tuple(effector.pin_rotation))
    return effector.target, effector.target_bone


def _why_nothing_moves(rig: bpy.types.Object, goals: Sequence[Goals]) -> str:
    """Why none of the effectors can be moved."""
    alone = [sentence for goal in goals for sentence in goal.left_alone]
    if alone:
        return f"No bone that may be turned moves an effector of {rig.name!r}. {alone[-1]}"
    return f"The effectors of {rig.name!r} lie at its root's head, which no bone can move: choose others"


def core_effector(effector: FabrikEffector | FabrikMarker) -> Effector:
    """The solver's effector for the one kept on the armature; offsets are in armature units."""
    offsets = {"TAIL": None, "HEAD": (0.0, 0.0, 0.0), "OFFSET": tuple(effector.offset)}
    offset = offsets[effector.point]
    if isinstance(effector, FabrikMarker):
        return Effector(effector.bone, offset=offset, weight=effector.weight)
    turns = effector.hold_rotation if effector.kind == "PIN" else effector.use_rotation
    return Effector(
        effector.bone,
        offset=offset,
        weight=effector.weight,
        rotation_weight=effector.rotation_weight if turns else 0.0,
        priority=effector.priority,
    )


def object_scale(world_matrices: FloatArray) -> FloatArray:
    """(...) uniform scale of (..., 4, 4) object matrices: world metres to one armature unit."""
    return np.cbrt(np.abs(np.linalg.det(world_matrices[..., :3, :3])))


def world_to_armature(points: FloatArray, world_matrices: FloatArray) -> FloatArray:
    """([F,] E, 3) world points in the space of the armature whose matrices are ([F,] 4, 4)."""
    into = np.linalg.inv(world_matrices)
    return points @ np.swapaxes(into[..., :3, :3], -1, -2) + into[..., None, :3, 3]


def add_effector(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    bone: str,
    *,
    point: str = "TAIL",
    target: bpy.types.Object | None = None,
    target_bone: str = "",
) -> FabrikEffector:
    """Add an effector for a bone, and an empty at the bone's point as its target where none is given.

    Raises RigError, before anything is changed, for a bone or target that cannot be used.
    """
    if bone not in rig.pose.bones:
        raise RigError(f"{rig.name!r} has no bone {bone!r}")
    reason = why_no_target(rig, target, target_bone) if target else ""
    if reason:
        raise RigError(reason)
    if target is None:
        target = _new_target(context, rig, rig.pose.bones[bone], point)
    kept = rig_settings(rig)
    effector = kept.effectors.add()
    effector.name = target_bone or target.name
    effector.bone, effector.point = bone, point
    effector.target, effector.target_bone = target, target_bone
    kept.active_effector = len(kept.effectors) - 1
    rig.update_tag(refresh={"OBJECT"})
    return effector


def remove_effector(rig: bpy.types.Object, index: int) -> str:
    """Remove an effector, keeping its target object; returns its name. Raises RigError where there is none there."""
    kept = rig_settings(rig)
    if not 0 <= index < len(kept.effectors):
        raise RigError(f"{rig.name!r} has no effector number {index}")
    name: str = kept.effectors[index].name
    kept.effectors.remove(index)
    kept.active_effector = min(kept.active_effector, max(len(kept.effectors) - 1, 0))
    rig.update_tag(refresh={"OBJECT"})
    return name


def _new_target(
    context: bpy.types.Context, rig: bpy.types.Object, bone: bpy.types.PoseBone, point: str
) -> bpy.types.Object:
    """An empty in the targets' collection, at a bone's head or tail in world space and turned as the bone."""
    context.view_layer.update()
    size = float(object_scale(np.array(rig.matrix_world)))
    empty = bpy.data.objects.new(f"{bone.name} target", None)
    empty.empty_display_type = "SPHERE"
    empty.empty_display_size = _TARGET_SIZE * bone.length * size
    empty.location = rig.matrix_world @ (bone.head if point == "HEAD" else bone.tail)
    empty.rotation_euler = (rig.matrix_world @ bone.matrix).to_euler()
    targets_collection(context.scene).objects.link(empty)
    return empty


def targets_collection(scene: bpy.types.Scene) -> bpy.types.Collection:
    """The scene's own collection of target empties, made where there is none."""
    for collection in scene.collection.children_recursive:
        if collection.library is None and collection.name.split(".")[0] == COLLECTION_NAME:
            return collection
    collection = bpy.data.collections.new(COLLECTION_NAME)
    scene.collection.children.link(collection)
    return collection
