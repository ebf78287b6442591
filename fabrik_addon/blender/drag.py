"""Dragging a bone: the rig follows inside its limits, pinned bones stay. Works without a window.

Every step is solved from the pose at the drag's start, so a drag that comes back ends where it began.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import bpy
import numpy as np
import numpy.typing as npt

from ..core import Effector
from ..core.arrays import FloatArray
from .auto_key import auto_key, check_auto_keying
from .drag_part import DragPart, Grip, tree_below
from .effectors import object_scale
from .limit_mirror import opposite_bone
from .pins import pin_grips, pins, point_offset, set_pin
from .posable import bones_left_alone
from .pose_keeper import PoseKeeper
from .pose_writer import PoseWriter
from .rig import RigError, Tree, check_editable, check_rig, nearest_rotations, read_trees
from .settings import FabrikEffector, rig_settings

_ALONG: Final = np.array((1.0, 1.0, 1.0))
_MIRRORED: Final = np.array((-1.0, 1.0, 1.0))
# A shift by less, as a share of the dragged bone's length, is none: the pose is the one at the start, to the bit.
_NO_SHIFT: Final = 1e-7
# World metres: what is less is not worth a word.
_SHOWN: Final = 5e-4


@dataclass(frozen=True)
class DragSettings:
    """How a drag goes about it.

    Attributes:
        reach: "WHOLE" rig, to the nearest "PIN", or a number of "BONES".
        bones: that number, the dragged bone included.
        root: "FIXED", "FREE" or "FOLLOW".
    """

    reach: str = "WHOLE"
    bones: int = 3
    root: str = "FIXED"


@dataclass(frozen=True)
class StepResult:
    """How a step went, in world metres.

    error: how far the dragged point is from where it was dragged to. pin_error: how far a pin is from its place.
    """

    error: float = 0.0
    pin_error: float = 0.0

    @property
    def line(self) -> str:
        """What is amiss, in one line; "" where nothing is."""
        parts = [
            f"{1000.0 * self.error:.1f} mm short" if self.error > _SHOWN else "",
            f"a pin is {1000.0 * self.pin_error:.1f} mm off" if self.pin_error > _SHOWN else "",
        ]
        return ", ".join(filter(None, parts))


class Drag:
    """One drag, from the press of the button to its release; made by `begin_drag`.

    Attributes:
        left_alone: the bones that would have followed, were they not hidden, locked or owned, each with the reason.
    """

    def __init__(
        self,
        context: bpy.types.Context,
        armature: bpy.types.Object,
        parts: Sequence[DragPart],
        dragged: Sequence[str],
        left_alone: Mapping[str, str],
    ) -> None:
        self.left_alone = dict(left_alone)
        self._armature, self._parts, self._dragged = armature, tuple(parts), tuple(dragged)
        self._keeper = PoseKeeper(context.scene, armature)
        self._writers = [PoseWriter(armature, part.tree, part.turned, moves_root=part.moves_root) for part in parts]
        self._world = np.array(armature.matrix_world, dtype=np.float64)
        self._scale = float(object_scale(self._world))
        self._axes = nearest_rotations(self._world[None, :3, :3])[0] @ _axes(armature, dragged[0])
        self._least = _NO_SHIFT * armature.data.bones[dragged[0]].length

    @property
    def start(self) -> FloatArray:
        """(3,) where the dragged point was at the start, in world space."""
        place = self._parts[0].grips[0].place
        return np.asarray(self._world[:3, :3] @ place + self._world[:3, 3])

    @property
    def axes(self) -> FloatArray:
        """(3, 3) the dragged bone's own axes at the start as columns, in world space."""
        return self._axes

    def step(self, location: npt.ArrayLike) -> StepResult:
        """Pose the rig for the dragged point to be at a place (3,) in world space."""
        shift = np.linalg.solve(self._world[:3, :3], np.asarray(location, dtype=np.float64) - self.start)
        if np.abs(shift).max() <= self._least:
            self._keeper.restore()
            return StepResult()
        error, pin_error = 0.0, 0.0
        for part, writer in zip(self._parts, self._writers, strict=True):
            pose = part.solve(shift)
            writer.write(pose.rotations, pose.head)
            error, pin_error = max(error, pose.error), max(pin_error, pose.pin_error)
        return StepResult(error * self._scale, pin_error * self._scale)

    def finish(self, context: bpy.types.Context) -> int:
        """Keep the pose: key what has changed if auto-keying asks for it, and move the dragged bones' own pins along.

        Returns how many bones have changed.
        """
        context.view_layer.update()
        changed = [pair for writer in self._writers for pair in writer.changed()]
        auto_key(context, self._armature, changed)
        for pin in rig_settings(self._armature).effectors:
            if pin.kind == "PIN" and pin.bone in self._dragged:
                set_pin(pin, self._armature.pose.bones[pin.bone])
        return len({bone for bone, _ in changed})

    def cancel(self) -> None:
        """Put everything back, bit for bit."""
        self._keeper.restore()


def begin_drag(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    bone: str,
    *,
    point: str = "TAIL",
    settings: DragSettings | None = None,
) -> Drag:
    """Take hold of a bone's "TAIL" or "HEAD"; nothing moves yet.

    Where X-mirror is on, the bone of the other side is dragged as well, by the mirror image of every shift.

    Raises:
        FabrikError: naming what keeps the bone from being dragged; the scene is untouched.
    """
    chosen = settings or DragSettings()
    check_rig(armature)
    check_editable(armature)
    if bone not in armature.pose.bones:
        raise RigError(f"{armature.name!r} has no bone {bone!r}")
    check_auto_keying(context, armature)
    context.view_layer.update()
    left = bones_left_alone(armature)
    dragged = {bone: _ALONG} | _mirrored(armature, bone)
    held = [pin for pin in pins(armature) if pin.bone not in dragged]
    trees = read_trees(armature)
    tops = _tops(armature, trees, dragged, point, held, chosen)
    parts = [_part(armature, tree, top, dragged, point, held, left, chosen.root) for top, tree in tops.items()]
    _check_moves(parts[0], bone, left)
    on_the_way = {name for part in parts for name in part.on_the_way}
    return Drag(context, armature, parts, list(dragged), {name: left[name] for name in left if name in on_the_way})


def _mirrored(armature: bpy.types.Object, bone: str) -> dict[str, FloatArray]:
    """The bone of the other side with its share in a shift, where X-mirror is on and there is one."""
    other = opposite_bone(armature, armature.pose.bones[bone]) if armature.pose.use_mirror_x else None
    return {} if other is None else {other.name: _MIRRORED}


def _tops(
    armature: bpy.types.Object,
    trees: Sequence[Tree],
    dragged: Mapping[str, FloatArray],
    point: str,
    held: Sequence[FabrikEffector],
    settings: DragSettings,
) -> dict[str, Tree]:
    """The uppermost bones that follow, each with the tree that it is in; none of them is below another one."""
    found = {}
    for bone in dragged:
        tree = next(tree for tree in trees if bone in tree.skeleton.names)
        found[_top(tree, bone, point, {pin.bone for pin in held}, settings)] = tree
    return {
        top: tree
        for top, tree in found.items()
        if not any(above.name in found for above in armature.pose.bones[top].parent_recursive)
    }


def _top(tree: Tree, bone: str, point: str, pinned: set[str], settings: DragSettings) -> str:
    """The uppermost bone that follows when a bone is dragged."""
    names = tree.skeleton.names
    path = [names[each] for each in tree.skeleton.path(tree.skeleton.index(bone))]
    if settings.reach == "PIN":
        pins_above = [place for place, name in enumerate(path[:-1]) if name in pinned]
        return path[pins_above[-1] + 1] if pins_above else path[0]
    if settings.reach == "BONES":
        # A bone that is held by its head does not turn itself.
        turning = path[:-1] if point == "HEAD" and len(path) > 1 else path
        return turning[max(0, len(turning) - settings.bones)]
    return path[0]


def _part(
    armature: bpy.types.Object,
    tree: Tree,
    top: str,
    dragged: Mapping[str, FloatArray],
    point: str,
    held: Sequence[FabrikEffector],
    left: Mapping[str, str],
    root: str,
) -> DragPart:
    """The piece of the rig from one bone down, with all that is dragged or pinned on it."""
    below = tree_below(armature, tree, top, left)
    names = below.skeleton.names
    grips = [_grip(armature, bone, point, moves) for bone, moves in dragged.items() if bone in names]
    grips += [grip for pin in held if pin.bone in names for grip in pin_grips(pin, armature.pose.bones[pin.bone])]
    is_root = top == tree.skeleton.names[0]
    moves_root = is_root and top not in left and not any(armature.pose.bones[top].lock_location)
    return DragPart(armature, below, grips, left, root if moves_root else "FIXED")


def _grip(armature: bpy.types.Object, bone: str, point: str, moves: FloatArray) -> Grip:
    """What takes hold of a bone."""
    pose_bone = armature.pose.bones[bone]
    offset = point_offset(point, (), pose_bone.bone.length)
    place = np.array(pose_bone.matrix, dtype=np.float64) @ np.append(offset, 1.0)
    return Grip(Effector(bone, offset=tuple(offset.tolist())), place[:3], moves)


def _axes(armature: bpy.types.Object, bone: str) -> FloatArray:
    """(3, 3) a bone's own axes as columns, in armature space."""
    turn = armature.pose.bones[bone].matrix.to_3x3()
    return nearest_rotations(np.array(turn, dtype=np.float64)[None])[0]


def _check_moves(part: DragPart, bone: str, left: Mapping[str, str]) -> None:
    """Raise RigError where nothing can follow the dragged bone."""
    if part.turned or part.moves_root:
        return
    if bone in left:
        raise RigError(f"Bone {bone!r} {left[bone]}, and no bone above it can follow: drag another one")
    raise RigError(f"Nothing can follow bone {bone!r} here: drag its tail, or let the root bone move")
