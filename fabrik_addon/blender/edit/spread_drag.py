"""Drags a bone over time: the frames around the current one follow by shares that a falloff defines.

On each frame of the span, the original pose is the preferred one. While the mouse moves, only some of the frames
are solved. On release, all frames with keys are solved and written.
"""

from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from bpy.types import Context, Object
from mathutils import Quaternion, Vector

from ...core.arrays import BoolArray, FloatArray, IntArray
from ...core.edit import EditPoses, EditSolver, between
from ...core.model.bodies import effector_offset
from ...core.rotations import product, quaternion_from_rotation_vector
from ..control.posed_rig import posed_rig
from ..goals.body import floor_of
from ..goals.effectors import move_pins_with
from ..posing.drag import SHOWN, Drag, DragSettings, DragSetup, StepResult, begin_drag
from ..rig.armature import RigError, object_scale
from ..rig.keyframes import SAME_FRAME, check_action, check_not_shared
from ..rig.keying import is_auto_keying
from ..rig.pose_writer import PoseKeeper
from ..settings.rig import rig_settings
from .keys import changed_channels, changes_of, write_changes, write_layer
from .span import Spread, make_span, room_above
from .take import is_animated

# The number of frames that are solved while the mouse moves, including the current one.
_KNOTS: Final = 16
# Frames. Keys that are at most this far apart count as successive frames.
_DENSE: Final = 1.5
# Frames on each side over which a drag fades out if no spread is set.
_FADES: Final = 10
AnyDrag: TypeAlias = "Drag | SpreadDrag"


class SpreadDrag:
    """One drag over time, from press to release of the button; `begin_spread` creates it.

    Attributes:
        left_alone: sentences about bones that do not follow. notice: always "", because limbs stay on IK or FK.
        start: (3,) position of the dragged point at the start, in world space.
        axes: (3, 3) the dragged bone's axes at the start as columns, in world space.
    """

    def __init__(self, context: Context, armature: Object, setup: DragSetup, point: str, spread: Spread) -> None:
        """Store the initial state. Raises RigError if no bone can follow."""
        scene, here = context.scene, context.scene.frame_current_final
        self._armature, self._dragged, self._layer = armature, setup.dragged, "LAYER" in spread.to
        self._span = span = make_span(
            scene, armature, setup, point, spread, here if spread.frame is None else spread.frame
        )
        now, count = span.now, len(span.shares)
        shown = np.flatnonzero(np.abs(span.motion.frames - here) < SAME_FRAME)
        self._knots = np.unique([*np.linspace(0, count - 1, _KNOTS).round().astype(int), now, *shown])
        self._row = int(np.searchsorted(self._knots, now))
        # If a point of a trail is dragged, the dragged frame is not the frame in the viewport.
        self._shown = [int(row) for row in np.searchsorted(self._knots, shown)]
        self._coarse = span.solver(self._knots)
        self._last: EditPoses | None = None
        self._asked: tuple[npt.ArrayLike, npt.ArrayLike | None] | None = None
        # The same drag on the current frame only, which shows what keeps the dragged point from its target.
        self._alone = setup.parts(turning=False) if shown.tolist() == [now] else []
        self._keeper = PoseKeeper(scene, armature)
        self._writer = posed_rig(armature).writer(
            context.view_layer.update, span.model.skeleton, self._coarse.bones, moves_root=span.model.free_root
        )
        world = np.array(armature.matrix_world, dtype=np.float64)
        self._to_world, self._rotation_to_world = world[:3, :3], armature.matrix_world.to_quaternion()
        self._scale = float(object_scale(world))
        self._is_dragged: BoolArray = np.array([each.bone in setup.dragged for each in span.model.effectors])
        self._is_held: BoolArray = np.array([each.priority == 0 for each in span.model.effectors])
        self._floor = floor = floor_of(armature)
        skeleton = span.model.skeleton
        dragged = [bone for bone in setup.dragged if bone in skeleton.names]
        self._rooms = {bone: room_above(floor, skeleton, span.posed, bone) for bone in dragged} if floor else {}
        # (F, 3) positions of the first dragged point in the original poses.
        effector = span.model.effectors[0]
        posed = span.posed[:, skeleton.index(effector.bone)] @ np.append(effector_offset(skeleton, effector), 1.0)
        self._own_way = posed[:, :3] @ self._to_world.T + world[:3, 3]
        self.left_alone, self.notice = list(span.left_alone), ""
        self.start: FloatArray = self._own_way[now]
        turn = Quaternion(self._coarse.own_rotations[self._row, 0].tolist())
        self.axes: FloatArray = np.array((self._rotation_to_world @ turn).to_matrix())

    def step(
        self, location: npt.ArrayLike, turn: npt.ArrayLike | None = None, _depth: npt.ArrayLike | None = None
    ) -> StepResult:
        """Pose the rig on the current frame so that the dragged point is at a location (3,), in world space.

        turn: (3,) rotation vector of its bone in radians, in world space; None leaves the rotation free. `_depth` is
        ignored: the depth of the location is always followed.
        """
        self._asked = location, turn
        found = self._last = self._coarse.solve(*self._goals(self._coarse, self._knots), self._last)
        for row in self._shown:
            self._writer.write(found.rotations[row], found.roots[row])
        errors = self._scale * found.errors[self._row]
        error = float(errors[self._is_dragged].max())
        why = self._why_short(location) if error > SHOWN and turn is None else ""
        return StepResult(error, errors[self._is_held].max(initial=0.0), why=why)

    def _why_short(self, location: npt.ArrayLike) -> str:
        """Why the dragged point can't reach a location (3,), in world space, on the current frame; "" if unknown."""
        shift = np.linalg.solve(self._to_world, np.asarray(location, dtype=np.float64) - self.start)
        poses = [part.solve(shift, Quaternion(), settled=True) for part in self._alone]
        if not poses:
            return ""
        worst = self._alone[int(np.argmax([pose.error for pose in poses]))]
        return worst.problem.why_short(worst.session)

    def paths_before_and_after(self) -> tuple[FloatArray, FloatArray]:
        """The old and the new path of the dragged point, (F, 3) each on the span's frames, in world space."""
        shift = np.asarray((self._asked or (self.start, None))[0], dtype=np.float64) - self.start
        return self._own_way, self._own_way + self._span.shares[:, None] * shift

    def finish(self, context: Context) -> int:
        """Solve all frames, and write the changes to the keys; returns the number of changed bones."""
        if self._last is None:
            return 0
        span = self._span
        solver = span.solver(slice(None))
        goals = self._goals(solver, slice(None))
        if np.diff(span.motion.frames).max() <= _DENSE:
            near = between(self._last, self._knots, span.motion.rotations, span.motion.roots)
            found = solver.smoothed(*goals, near)
        else:
            found = solver.solve(*goals)
        armature, names = self._armature, span.model.skeleton.names
        changed, unkeyed = changed_channels(armature, span.take, span.motion, found.rotations, found.roots)
        self.left_alone += [f"Control {name!r} has no keys and was not changed: key it first" for name in unkeyed]
        if self._layer or span.take.is_layered:
            write_layer(armature, span.motion.frames, changed)
        else:
            changes = changes_of(span.take, span.motion.frames, changed)
            write_changes(armature, changes, (span.frame,), span.ends)
        self._keeper.restore([span.take.place, *(span.take.holders[names[bone]] for bone in self._coarse.bones)])
        context.view_layer.update()
        move_pins_with(armature, self._dragged)
        return len({each.bone.name for each in changed})

    def cancel(self) -> None:
        """Restore everything exactly."""
        self._keeper.restore()

    def _goals(self, solver: EditSolver, rows: IntArray | slice) -> tuple[FloatArray, FloatArray]:
        """(F, E, 3) targets and (F, E, 4) rotations on some of the span's frames."""
        location, turn = self._asked or (self.start, None)
        shares = self._span.shares[rows]
        shift = np.linalg.solve(self._to_world, np.asarray(location, dtype=np.float64) - self.start)
        targets, rotations = solver.own_points.copy(), solver.own_rotations.copy()
        for place, effector in enumerate(self._span.model.effectors):
            if effector.bone not in self._dragged:
                continue
            shifts = shares[:, None] * (self._dragged[effector.bone] * shift)
            if self._floor is not None:
                # Go down by at most the room above the floor.
                normal, room = np.array(self._floor.normal), self._rooms[effector.bone][rows]
                shifts = shifts + np.maximum(-shifts @ normal - room, 0.0)[:, None] * normal
            targets[:, place] += shifts
            # A root that can be moved directly keeps its rotation.
            leads = self._span.model.free_root and effector.bone == self._span.model.skeleton.names[0]
            if turn is None and not leads:
                rotations[:, place] = np.nan
            elif turn is not None:
                vector = self._rotation_to_world.conjugated() @ Vector(np.asarray(turn, dtype=np.float64).tolist())
                # Mirrored like the translation.
                side = self._dragged[effector.bone][0]
                vectors = shares[:, None] * (vector.x, side * vector.y, side * vector.z)
                rotations[:, place] = product(quaternion_from_rotation_vector(vectors), rotations[:, place])
        return targets, rotations


def begin_spread(
    context: Context,
    armature: Object,
    bone: str,
    spread: Spread,
    *,
    point: str = "TAIL",
    settings: DragSettings | None = None,
) -> SpreadDrag:
    """Start dragging a bone's "TAIL" or "HEAD" over time; nothing moves yet. Uses X-mirror, like `begin_drag`.

    Raises:
        FabrikError: says why the bone can't be dragged; the scene is unchanged.
    """
    if rig_settings(armature).live:
        raise RigError(f"{armature.name!r} is posed by Live: turn Live off to edit its motion")
    if not is_animated(armature):
        raise RigError(f"{armature.name!r} has no keys to edit: bake or key some motion first")
    check_action(armature, new=False)
    if "LAYER" not in spread.to:
        check_not_shared(armature)
    context.view_layer.update()
    return SpreadDrag(context, armature, DragSetup(armature, bone, point, settings or DragSettings()), point, spread)


def begin_any_drag(
    context: Context, armature: Object, bone: str, point: str, settings: DragSettings, spread: Spread
) -> AnyDrag:
    """Start dragging a bone by its "TAIL" or "HEAD"; nothing moves yet.

    If there are no keys, or they can't be changed, only the current frame is dragged, which `left_alone`
    reports.

    Raises:
        FabrikError: the bone can't be dragged, or not on that frame; the scene is unchanged.
    """
    trouble = "" if is_auto_keying(context) else "Auto Keying is off, so keys can't be changed: enable it"
    if not is_animated(armature):
        trouble = f"{armature.name!r} has no keys to edit: bake or key some motion first"
    if spread.frame is not None and trouble:
        raise RigError(f"Frame {spread.frame:g} can't be edited: {trouble}")
    if spread.frame is not None and not spread.before:
        spread = replace(spread, before=_FADES, after=_FADES)
    if spread.before and not trouble:
        return begin_spread(context, armature, bone, spread, point=point, settings=settings)
    drag = begin_drag(context, armature, bone, point=point, settings=settings)
    if spread.before:
        drag.left_alone.append(f"Only this frame was changed: {trouble}")
    return drag
