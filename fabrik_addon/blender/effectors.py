"""The effectors kept on an armature: making them, checking them, and handing them to the solver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import bpy
import numpy as np
import numpy.typing as npt

from ..core import Effector, Solver
from ..core.limits import Limit
from .limit_properties import read_limits
from .marker_settings import FabrikMarker
from .rig import RigError, Tree
from .settings import FabrikEffector, rig_settings

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Target = tuple[bpy.types.Object, str]

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
        targets: E objects, each with the name of its bone or "" for the object itself.
        limits: those of the bones to be solved, by name.
    """

    tree: Tree
    names: tuple[str, ...]
    effectors: tuple[Effector, ...]
    targets: tuple[Target, ...]
    limits: Mapping[str, Limit] = field(default_factory=dict)

    @property
    def turned_by(self) -> BoolArray:
        """(E, J) whether turning a bone moves an effector."""
        skeleton = self.tree.skeleton
        turned = np.zeros((len(self.effectors), len(skeleton)), dtype=bool)
        for row, effector in zip(turned, self.effectors, strict=True):
            bone = skeleton.index(effector.bone)
            path = skeleton.path(bone)
            row[path if _turning_moves(effector, float(skeleton.lengths[bone])) else path[:-1]] = True
        return turned

    @property
    def bones(self) -> list[int]:
        """The bones to be solved, as places in the skeleton: those whose turning moves an effector."""
        return [int(bone) for bone in np.flatnonzero(self.turned_by.any(axis=0))]

    def solver(self, *, free_root: bool) -> Solver:
        """The solver for these effectors, inside the limits."""
        root = "FREE" if free_root else "FIXED"
        return Solver(self.tree.skeleton, self.effectors, limits=self.limits, root=root)


def _turning_moves(effector: Effector, length: float) -> bool:
    """Whether the effector lies off its bone's head, so that turning the bone moves it."""
    point = (0.0, length, 0.0) if effector.offset is None else effector.offset
    return any(point)


def why_no_rig(rig: bpy.types.Object | None) -> str:
    """What keeps the add-on from working on an object, and what to do; "" where nothing does."""
    if rig is None or rig.type != "ARMATURE":
        return "Select an armature"
    if rig.library is not None:
        return f"{rig.name!r} is linked from another file: make a library override of it first"
    if rig.mode == "EDIT":
        return "Leave Edit mode first"
    return ""


def why_no_solve(rig: bpy.types.Object | None) -> str:
    """What keeps an object from being solved or baked, and what to do; "" where nothing does."""
    trouble = why_no_rig(rig)
    if trouble or rig is None:
        return trouble
    if not len(rig_settings(rig).effectors):
        return f"{rig.name!r} has no effector: pick a bone in Pose mode and add one"
    if not enabled_effectors(rig):
        return f"All effectors of {rig.name!r} are switched off: enable one"
    return ""


def enabled_effectors(rig: bpy.types.Object) -> list[FabrikEffector]:
    """The effectors that count: switched on, with a weight."""
    return [effector for effector in rig_settings(rig).effectors if effector.enabled and effector.weight > 0.0]


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
    """Raise RigError where the effector's target is gone, or is the rig itself."""
    target = effector.target
    if target is None:
        raise RigError(f"Effector {effector.name!r} has no target (was it deleted?): choose one")
    # The effector itself keeps a deleted object in the file, outside of every scene.
    if scene.objects.get(target.name) != target:
        raise RigError(f"Effector {effector.name!r}: its target {target.name!r} is not in scene {scene.name!r}")
    reason = why_no_target(rig, target, effector.target_bone)
    if reason:
        raise RigError(f"Effector {effector.name!r}: {reason}")


def why_no_target(rig: bpy.types.Object, target: bpy.types.Object, bone: str) -> str:
    """What keeps an object, or a bone of it, from being a target of a rig; "" where nothing does."""
    if target == rig:
        return f"{rig.name!r} can't be its own target: choose another object"
    if bone and target.type != "ARMATURE":
        return f"{target.name!r} is no armature, so has no bone {bone!r}"
    if bone and bone not in target.pose.bones:
        return f"{target.name!r} has no bone {bone!r}"
    return ""


def gather_goals(
    rig: bpy.types.Object, trees: Sequence[Tree], wanted: Sequence["FabrikEffector | FabrikMarker"] | None = None
) -> list[Goals]:
    """The enabled effectors, tree by tree; trees without any are left out. Limits are as they are on the present frame.

    wanted: markers, or some of the effectors, in place of them. They must have passed `check_effectors` or
    `check_followed`. Raises RigError where no bone can move any of them, and LimitPropertyError for a limit that makes
    no sense.
    """
    enabled = enabled_effectors(rig) if wanted is None else wanted
    goals = []
    for tree in trees:
        own = [effector for effector in enabled if effector.bone in tree.skeleton.names]
        if own:
            goals.append(
                Goals(
                    tree,
                    tuple(effector.name for effector in own),
                    tuple(core_effector(effector) for effector in own),
                    tuple((effector.target, effector.target_bone) for effector in own),
                )
            )
    if not any(goal.bones for goal in goals):
        raise RigError(f"The effectors of {rig.name!r} lie at its root's head, which no bone can move: choose others")
    return [_with_limits(rig, goal) for goal in goals]


def _with_limits(rig: bpy.types.Object, goals: Goals) -> Goals:
    """The same with the limits of the bones to be solved."""
    names = goals.tree.skeleton.names
    return replace(goals, limits=read_limits(rig, [names[bone] for bone in goals.bones]))


def core_effector(effector: "FabrikEffector | FabrikMarker") -> Effector:
    """The solver's effector for the one kept on the armature; offsets are in armature units."""
    offsets = {"TAIL": None, "HEAD": (0.0, 0.0, 0.0), "OFFSET": tuple(effector.offset)}
    return Effector(effector.bone, offset=offsets[effector.point], weight=effector.weight)


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
    return effector


def remove_effector(rig: bpy.types.Object, index: int) -> str:
    """Remove an effector, keeping its target object; returns its name. Raises RigError where there is none there."""
    kept = rig_settings(rig)
    if not 0 <= index < len(kept.effectors):
        raise RigError(f"{rig.name!r} has no effector number {index}")
    name: str = kept.effectors[index].name
    kept.effectors.remove(index)
    kept.active_effector = min(kept.active_effector, max(len(kept.effectors) - 1, 0))
    return name


def _new_target(
    context: bpy.types.Context, rig: bpy.types.Object, bone: bpy.types.PoseBone, point: str
) -> bpy.types.Object:
    """An empty in the targets' collection, at a bone's head or tail in world space."""
    context.view_layer.update()
    size = float(object_scale(np.array(rig.matrix_world)))
    empty = bpy.data.objects.new(f"{bone.name} target", None)
    empty.empty_display_type = "SPHERE"
    empty.empty_display_size = _TARGET_SIZE * bone.length * size
    empty.location = rig.matrix_world @ (bone.head if point == "HEAD" else bone.tail)
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
