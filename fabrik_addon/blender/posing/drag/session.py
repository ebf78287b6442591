"""Dragging a bone: the rig follows inside its limits, pinned bones stay. Works without a window.

Every step goes on from the pose before, and stays near the one at the drag's start: so it flows, and a drag that comes
back ends where it began.
"""

from dataclasses import dataclass, replace
from typing import Final

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Quaternion, Vector

from ....core.arrays import FloatArray
from ....core.errors import first_few
from ...control.posed_rig import posed_rig
from ...goals.pins import take_pins_along
from ...rig.armature import RigError, check_bones, check_editable, check_rig, nearest_rotations
from ...rig.keying import check_auto_keying, is_auto_keying, key_channels, why_no_key
from ...rig.pose_keeper import PoseKeeper
from ...rig.posture_masses import is_hips
from ...rig.spaces import as_array, length_text, object_scale
from ...settings.control import solved_bone
from ...settings.rig import rig_settings
from .. import live
from ..key_pose import forget_posed, note_posed
from ..posture_session import why_short
from ..snap_targets import snap_targets
from .setup import DragSettings, DragSetup

# A shift by less, as a share of the dragged bone's length, or a turn by less, in radians, is none: the pose is the one
# at the start, to the bit.
_LEAST_SHIFT: Final = 1e-7
_LEAST_TURN: Final = 1e-7
# World meters: what is less is not worth a word.
SHOWN: Final = 5e-4


@dataclass(frozen=True)
class StepResult:
    """How a step went, in world meters.

    error: how far the dragged point is from where it was dragged to. pin_error: how far a pin is from its place.
    is_on_the_way: whether the same step once more goes on, as joints do not run ahead of what is dragged.
    deeper: how much farther along the `depth` of the step the dragged point is than asked. why: what keeps the dragged
    point from there, such as "foot.L is at its limit"; "" if nothing does.
    """

    error: float = 0.0
    pin_error: float = 0.0
    is_on_the_way: bool = False
    deeper: float = 0.0
    why: str = ""

    @property
    def line(self) -> str:
        """How far off the dragged point and pins are, in the scene's units and in one line; "" if all are in place."""
        parts = []
        if self.error > SHOWN:
            parts.append(f"{length_text(self.error)} short" + (f": {self.why}" if self.why else ""))
        if self.pin_error > SHOWN:
            parts.append(f"a pin is {length_text(self.pin_error)} off")
        return ", ".join(parts)


class Drag:
    """One drag, from the press of the button to its release; made by `begin_drag`.

    Attributes:
        left_alone: sentences about the bones that would have followed, did they not belong to something else; once it
        is
            finished, also on why auto-keying has set no key.
        notice: what the drag is about to do to the rig besides posing it, in one line; "" for nothing.
        start: (3,) where the dragged point was at the start, in world space.
        axes: (3, 3) the dragged bone's own axes at the start as columns, in world space.
    """

    def __init__(self, context: bpy.types.Context, armature: bpy.types.Object, setup: DragSetup) -> None:
        """Take note of how things are. Raises RigError if nothing can follow."""
        bone = next(iter(setup.dragged))
        self._armature, self._dragged, self._setup = armature, tuple(setup.dragged), setup
        self._parts, self._turning_parts = setup.parts(turning=False), setup.parts(turning=True)
        self._last_parts = self._parts
        self._asked: tuple[npt.ArrayLike, npt.ArrayLike | None, npt.ArrayLike | None] | None = None
        if not any(part.turned or part.moves_root for part in self._parts):
            raise RigError(_why_nothing_follows(bone, setup))
        self._keeper = PoseKeeper(context.scene, armature)
        self._writers = [
            posed_rig(armature).writer(
                context.view_layer.update, part.tree.skeleton, part.written, moves_root=part.moves_root
            )
            for part in self._turning_parts
        ]
        leaving = [bone for each in self._writers for bone in each.leaving_ik]
        self.notice = f"Limbs switched from IK to FK: {first_few(leaving)}" if leaving else ""
        self._bones = armature.pose.bones.keys()
        world = as_array(armature.matrix_world)
        self._to_world, self._rotation_to_world = world[:3, :3], armature.matrix_world.to_quaternion()
        self._scale = float(object_scale(world))
        self._has_soft_depth = is_hips(armature, bone)
        self._least_shift = _LEAST_SHIFT * armature.data.bones[bone].length
        axes = nearest_rotations(as_array(armature.pose.bones[bone].matrix)[None, :3, :3])[0]
        self.left_alone = setup.left_alone(self._parts)
        self.start: FloatArray = self._to_world @ self._parts[0].grips[0].armature_position + world[:3, 3]
        self.axes: FloatArray = np.array(self._rotation_to_world.to_matrix()) @ axes

    def step(
        self,
        location: npt.ArrayLike,
        turn: npt.ArrayLike | None = None,
        depth: npt.ArrayLike | None = None,
        *,
        settled: bool = False,
    ) -> StepResult:
        """Pose the rig for the dragged point to be at a place, and for its bone to be rotated.

        Args:
            location: (3,) in world space.
            turn: (3,) rotation vector in radians and world space, from how the bone was turned at the start; None
                lets it rotate freely.
            depth: (3,) the direction in world space in which a person's hips may go anywhere, such as the line of sight
                of the view in which they are dragged: in a squat they go back. Other bones ignore it; a chest, tried
                the same way, bent over backward.
            settled: go on until the joints rest, as on release; otherwise a move takes a bounded time.

        Raises:
            RigError: where the armature, or a bone of it, is gone meanwhile.
        """
        if not self._is_there():
            raise RigError(f"The armature of bone {self._dragged[0]!r} was changed during the drag: drag again")
        self._asked = location, turn, depth
        armature_shift = np.linalg.solve(self._to_world, np.asarray(location, dtype=np.float64) - self.start)
        world_turn = Vector(np.zeros(3).tolist() if turn is None else np.asarray(turn, dtype=np.float64).tolist())
        if np.abs(armature_shift).max() <= self._least_shift and world_turn.length <= _LEAST_TURN:
            self._keeper.restore()
            for part in (*self._parts, *self._turning_parts):
                part.session.begin(part.tree.rotations, part.tree.root_location)
            return StepResult()
        to_world = self._rotation_to_world
        armature_turn = to_world.conjugated() @ Quaternion(world_turn, world_turn.length) @ to_world
        armature_depth = None
        if depth is not None and self._has_soft_depth:
            armature_depth = np.linalg.solve(self._to_world, np.asarray(depth, dtype=np.float64))
            armature_depth /= np.linalg.norm(armature_depth)
        poses = []
        parts = self._parts if turn is None else self._turning_parts
        for part, last in zip(parts, self._last_parts, strict=True):
            part.session.go_on_from(last.session.rotations, last.session.location)
        self._last_parts = parts
        for part, writer in zip(parts, self._writers, strict=True):
            pose = part.solve(armature_shift, armature_turn, depth=armature_depth, settled=settled)
            writer.write(pose.local_rotations, pose.armature_head)
            poses.append(pose)
        worst = int(np.argmax([pose.error for pose in poses]))
        return StepResult(
            self._scale * poses[worst].error,
            self._scale * max(pose.pin_error for pose in poses),
            any(pose.is_on_the_way for pose in poses),
            0.0 if armature_depth is None else self._scale * poses[0].deeper,
            why_short(parts[worst].session.holding(), self._setup.pinned),
        )

    def keep_orientation(self, context: bpy.types.Context, *, keep: bool) -> None:
        """Whether dragged feet and heads keep their orientation from now on.

        The next step goes on from the current pose.
        """
        self._keeper.restore()
        context.view_layer.update()
        setup = DragSetup(
            self._armature, self._dragged[0], self._setup.point, replace(self._setup.settings, keep_orientation=keep)
        )
        self._setup, self._parts = setup, setup.parts(turning=False)

    def _is_there(self) -> bool:
        """Whether the armature has the bones that it had: undo, or another window, may have taken some away."""
        try:
            return self._armature.pose.bones.keys() == self._bones
        except ReferenceError:
            return False

    def finish(self, context: bpy.types.Context) -> int:
        """Keep the pose: key what has changed if auto-keying asks for it, and move the dragged bones' own pins along.

        A live rig's targets go to where the pose is now. Returns how many bones have changed.
        """
        if self._asked is not None:
            self.step(*self._asked, settled=True)
        context.view_layer.update()
        self.left_alone += [sentence for writer in self._writers for sentence in writer.settle()]
        changed = {key: values for writer in self._writers for key, values in writer.changed().items()}
        note_posed(self._armature, changed)
        if changed and is_auto_keying(context):
            keyed = key_channels(context, self._armature, changed, automatic=True, before=changed)
            forget_posed(self._armature, keyed)
            if keyed:
                for writer in self._writers:
                    writer.key_switches(context.scene.frame_current_final)
            else:
                self.left_alone.append(why_no_key(context, automatic=True))
        take_pins_along(self._armature, self._dragged)
        if rig_settings(self._armature).live:
            try:
                snap_targets(context, self._armature)
            except RigError:
                # None of its targets can be moved, so live posing has its way.
                live.resume(self._armature)
        return len({bone for bone, _ in changed})

    def cancel(self) -> None:
        """Put everything back, bit for bit."""
        try:
            self._keeper.restore()
        finally:
            live.resume(self._armature)


def begin_drag(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    bone: str,
    *,
    point: str = "TAIL",
    settings: DragSettings | None = None,
) -> Drag:
    """Take hold of a bone's "TAIL" or "HEAD"; nothing moves yet.

    Where X-mirror is on, the bone of the other side is dragged as well, by the mirror image of every shift. A live rig
    rests until the drag is finished or cancelled.

    Raises:
        FabrikError: naming what keeps the bone from being dragged; the scene is untouched.
    """
    check_rig(armature)
    check_editable(armature)
    check_bones(armature, bone)
    bone = solved_bone(armature, bone)
    check_auto_keying(context, armature)
    context.view_layer.update()
    drag = Drag(context, armature, DragSetup(armature, bone, point, settings or DragSettings()))
    if rig_settings(armature).live:
        live.pause(armature)
    return drag


def _why_nothing_follows(bone: str, setup: DragSetup) -> str:
    """Why a bone can't be dragged, and what to do."""
    if bone in setup.frozen:
        return f"Bone {bone!r} can't be dragged: {setup.frozen[bone]}, and no parent can follow; drag another"
    return f"Nothing can follow bone {bone!r} here: drag its tail, or let the root bone move"
