"""Drags a bone: the rig follows inside its limits, and pinned bones stay. Works without a window.

Every step continues from the previous pose, and stays near the pose at the drag's start. So the motion is smooth, and a
drag that returns ends where it began.
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
from ...goals.effectors import move_pins_with
from ...rig.armature import RigError, check_bones, check_editable, check_rig, nearest_rotations
from ...rig.keying import check_auto_keying, is_auto_keying, key_channels, why_no_key
from ...rig.pose_writer import PoseKeeper
from ...rig.posture_masses import is_hips
from ...rig.spaces import as_array, length_text, object_scale
from ...settings.control import solved_bone
from ...settings.rig import rig_settings
from .. import live
from ..key_pose import forget_posed, note_posed
from ..snap_targets import snap_targets
from .setup import DragSettings, DragSetup

# Share of the dragged bone's length, and radians. A smaller translation or rotation is ignored, so that the pose is
# exactly the one at the start.
_LEAST_SHIFT: Final = 1e-7
_LEAST_TURN: Final = 1e-7
# World meters. Smaller distances are not reported.
SHOWN: Final = 5e-4


@dataclass(frozen=True)
class StepResult:
    """The result of a step, in world meters.

    error: distance of the dragged point from its target. pin_error: distance of a pin from its location. is_on_the_way:
    whether repeating the step moves the joints on, because they ease in. deeper: distance along the step's `depth` by
    which the dragged point is beyond its target. why: why the dragged point misses its target, such as "foot.L is at
    its limit"; "" without a reason.
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
        if self.error > SHOWN:
            parts.append(f"{length_text(self.error)} short" + (f": {self.why}" if self.why else ""))
        if self.pin_error > SHOWN:
            parts.append(f"a pin is {length_text(self.pin_error)} off")
        return ", ".join(parts)


class Drag:
    """One drag, from the press of the button to its release; made by `begin_drag`.

    Attributes:
        left_alone: notes on bones that cannot follow because something else moves them. After the drag, also the reason
            if auto-keying has set no key.
        notice: a line about other changes of the rig, such as limbs switched to FK; "" for none.
        start: (3,) the dragged point at the start, world space.
        axes: (3, 3) the dragged bone's own axes at the start as columns, world space.
    """

    def __init__(self, context: bpy.types.Context, armature: bpy.types.Object, setup: DragSetup) -> None:
        """Record the rig's state. Raises RigError if nothing can follow."""
        bone = next(iter(setup.dragged))
        self._armature, self._dragged, self._setup = armature, tuple(setup.dragged), setup
        self._parts, self._turning_parts = setup.parts(turning=False), setup.parts(turning=True)
        self._last_parts = self._parts
        self._asked: tuple[npt.ArrayLike, npt.ArrayLike | None, npt.ArrayLike | None] | None = None
        if not any(part.turned or part.moves_root for part in self._parts):
            if bone in setup.frozen:
                raise RigError(
                    f"Bone {bone!r} can't be dragged: {setup.frozen[bone]}, and no parent can follow; drag another"
                )
            raise RigError(f"Nothing can follow bone {bone!r} here: drag its tail, or let the root bone move")
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
        """Pose the rig with the dragged point at a location, and its bone rotated.

        Args:
            location: (3,) in world space.
            turn: (3,) rotation vector in radians and world space, relative to the start; None lets the bone rotate
                freely.
            depth: (3,) the direction in world space along which a person's hips are free, such as the line of sight of
                the view in which they are dragged. In a squat they then move back. Other bones ignore it: in a test, a
                chest with this freedom bent over backward.
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
            part.session.continue_from(last.session.rotations, last.session.location)
        self._last_parts = parts
        for part, writer in zip(parts, self._writers, strict=True):
            pose = part.solve(armature_shift, armature_turn, depth=armature_depth, settled=settled)
            writer.write(pose.local_rotations, pose.armature_head)
            poses.append(pose)
        worst = int(np.argmax([pose.error for pose in poses]))
        return StepResult(
            self._scale * poses[worst].error,
            self._scale * max(pose.pin_error for pose in poses),
            any(pose.is_catching_up for pose in poses),
            0.0 if armature_depth is None else self._scale * poses[0].deeper,
            parts[worst].problem.why_short(parts[worst].session),
        )

    def keep_orientation(self, context: bpy.types.Context, *, keep: bool) -> None:
        """Set whether dragged feet and heads keep their orientation from now on.

        The next step continues from the current pose.
        """
        self._keeper.restore()
        context.view_layer.update()
        setup = DragSetup(
            self._armature, self._dragged[0], self._setup.point, replace(self._setup.settings, keep_orientation=keep)
        )
        self._setup, self._parts = setup, setup.parts(turning=False)

    def finish(self, context: bpy.types.Context) -> int:
        """Keep the pose: key the changes if auto-keying is on, and move the pins of the dragged bones.

        Moves a live rig's targets to the pose. Returns the number of changed bones.
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
        move_pins_with(self._armature, self._dragged)
        if rig_settings(self._armature).live:
            try:
                snap_targets(context, self._armature)
            except RigError:
                # None of the targets can be moved, so Live determines the pose.
                live.resume(self._armature)
        return len({bone for bone, _ in changed})

    def cancel(self) -> None:
        """Restore everything exactly."""
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
    """Start dragging a bone's "TAIL" or "HEAD"; nothing moves yet.

    With X-mirror, the bone on the other side is dragged too, with mirrored translations. Live posing of the rig pauses
    until the drag is finished or cancelled.

    Raises:
        FabrikError: says why the bone can't be dragged; the scene is unchanged.
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
