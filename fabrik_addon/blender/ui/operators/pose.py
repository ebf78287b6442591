"""Operators of the Pose tab: drags, targets, pins and solving."""

from functools import partial
from inspect import get_annotations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import bpy
from bpy.types import Context, Event, Object, Operator
from mathutils import Quaternion, Vector

from ... import OnUse
from ...posing import live
from ...settings.control import solved_bone
from ...settings.declare import Bool, Enum, FloatVector, Int, String
from ...settings.motion import POINTS
from ...settings.rig import ASIDE, FabrikDragSettings, FabrikRig, rig_settings
from ...settings.why_not import is_played, rig_at_hand, shared_targets, shown_motion, why_no_solve
from ..overlays.handlers import DrawingHandlers
from ..translations import ui_message
from .base import Bones, Done, OnBones, OnRig, Watch, keyword, report_all, reports_errors, set_up_first, takes

if TYPE_CHECKING:
    import numpy as np

    from ....core import errors
    from ...control import set_up
    from ...edit import spread_drag
    from ...goals import effectors
    from ...posing import drag, key_pose, mouse, snap_targets, solve
    from ...rig import armature, pose_writer
    from ...settings import selection
    from ..overlays import drawing
else:
    np, errors, set_up = map(OnUse, ("numpy", "..core.errors", ".control.set_up"))
    spread_drag, effectors = map(OnUse, (".edit.spread_drag", ".goals.effectors"))
    drag, key_pose, mouse, snap_targets, solve = (
        OnUse(f".posing.{name}") for name in ("drag", "key_pose", "mouse", "snap_targets", "solve")
    )
    armature, pose_writer, selection = map(OnUse, (".rig.armature", ".rig.pose_writer", ".settings.selection"))
    drawing = OnUse(".ui.overlays.drawing")

_PINNING = (
    ("TOGGLE", "Toggle", "Unpin the bones if all of them are pinned, otherwise pin them"),
    ("PIN", "Pin", "Hold the bones at their current positions"),
    ("UNPIN", "Unpin", "Remove the pins of the bones"),
)
# The declared settings of a rig, for the arguments of operators.
_RIG: Any = SimpleNamespace(**get_annotations(FabrikRig) | get_annotations(FabrikDragSettings))


class OnControls(OnRig):
    """An operator that users start on the active bone. If this is a control, its rig is set up first."""

    @reports_errors
    def invoke(self, context: Context, event: Event) -> set[str]:
        """Set up the control rig if needed, then run."""
        self.set_up_first(context)
        return self.execute(context)

    def set_up_first(self, context: Context) -> None:
        """Set up the control rig if needed."""
        bone = rig_at_hand(context).data.bones.active
        if bone is not None and not bone.use_deform:
            set_up_first(self, context)


class OnGoals(OnRig):
    """An operator on the rig's targets and pins."""

    @staticmethod
    def why_not(rig: Object) -> str:
        return "" if len(rig_settings(rig).effectors) else f"{rig.name!r} has no target or pin: add one first"


class FABRIK_OT_add_effector(OnControls, Operator):
    """Make the active bone reach for a target. By default, add an empty at the bone's tail or head"""

    bl_label = "Add Target"

    bone: String("Bone", "The bone that reaches for the target. Defaults to the active bone", options=ASIDE)
    point: Enum("Point", "The point on the bone that reaches for the target", items=POINTS[:2])
    target: String("Target", "The object to reach. Defaults to a new empty", options=ASIDE)
    target_bone: String("Target Bone", "If the target is an armature, the bone whose head is the target", options=ASIDE)

    def run(self, context: Context, rig: Object) -> Done:
        bone = self.bone or selection.clicked_bone(rig).name
        target = selection.named(bpy.data.objects, self.target, "object")
        effector = effectors.add_effector(
            context, rig, bone, point=self.point, target=target, target_bone=self.target_bone
        )
        return f"{bone!r} now reaches for {effector.target.name!r}", []


class FABRIK_OT_own_targets(OnRig, Operator):
    """Copy targets that the rig shares with another rig, for example after it was duplicated"""

    bl_label = "Make Targets Single-User"

    @staticmethod
    def why_not(rig: Object) -> str:
        return "" if shared_targets(rig) else f"{rig.name!r} shares no targets with other rigs: select a rig that does"

    def run(self, context: Context, rig: Object) -> Done:
        return f"{rig.name!r} now has its own targets: {len(effectors.own_targets(rig))}", []


class FABRIK_OT_remove_effector(OnGoals, Operator):
    """Remove the active target or pin from the list. The target object is kept"""

    bl_label = "Remove Target or Pin"

    index: keyword(_RIG.active_effector)

    def run(self, context: Context, rig: Object) -> Done:
        name = effectors.remove_effector(rig, self.given("index").get("index", rig_settings(rig).active_effector))
        return f"Removed {name!r}", []


class FABRIK_OT_order_effectors(OnGoals, Operator):
    """Set the priorities of a human rig's targets by bone name: feet first, then hands, trunk and head"""

    bl_label = "Set Human Priorities"

    def run(self, context: Context, rig: Object) -> Done:
        return effectors.order_effectors(rig)


class FABRIK_OT_pin(OnControls, OnBones, Operator):
    """Hold the selected bones in place while others are dragged, or unpin them"""

    bl_label = "Pin Bones"

    action: Enum("Action", "Whether to pin or unpin the bones", items=_PINNING)
    point: Enum("Point", "The end of the bone that is held if the rotation is not held", items=POINTS[:2])
    hold_rotation: Bool("Hold Rotation", "Hold the rotation of the bones as well as their position", default=True)

    def run(self, context: Context, rig: Object) -> Done:
        bones = self.chosen(context, rig)
        rigs: Any = dict.fromkeys(bone.id_data for bone in bones)
        by_rig = {each: [bone.name for bone in bones if bone.id_data == each] for each in rigs}
        pinned = all(effectors.pins_of(each, name) for each, names in by_rig.items() for name in names)
        if self.action == "UNPIN" or (self.action == "TOGGLE" and pinned):
            count = sum(effectors.unpin_bones(each, names) for each, names in by_rig.items())
            return f"Unpinned {count} of {errors.bones_of(len(bones))}", []
        context.view_layer.update()
        for each in by_rig:
            armature.check_editable(each)
        for each, names in by_rig.items():
            effectors.pin_bones(each, names, point=self.point, hold_rotation=self.hold_rotation)
        return f"Pinned {errors.bones_of(len(bones))}", []

    def chosen(self, context: Context, rig: Object) -> Bones:
        """The named bones, else the selected bones of all armatures in Pose mode, else the active. Keeps controls."""
        if self.bones:
            return selection.named_bones(rig, self.bones)
        selected = [] if context.mode != "POSE" else context.selected_pose_bones
        return selected or super().chosen(context, rig)


STARTS = (
    ("PRESENT", "Current Pose", "Find the pose nearest to the current pose that meets the targets"),
    ("REST", "Rest", "Start from the rest pose, so that the result depends only on the targets"),
)


class FABRIK_OT_pose_mode(OnRig, Operator):
    """Make the rig active and enter Pose mode to drag bones"""

    bl_label = "Enter Pose Mode"

    def run(self, context: Context, rig: Object) -> Done:
        pose_writer.set_mode(context, "OBJECT")
        pose_writer.set_mode(context, "POSE", rig)
        rig.select_set(True)
        return f"{rig.name!r} is now active in Pose mode", []


class FABRIK_OT_solve(OnRig, Operator):
    """Pose the rig so that its bones reach their targets on the current frame"""

    bl_label = "Solve IK"
    described_by = ("start",)
    why_not = staticmethod(why_no_solve)

    start: Enum("Start From", "The pose from which to solve", items=STARTS)

    def run(self, context: Context, rig: Object) -> Done:
        result = solve.solve_frame(context, rig, self.start)
        return result.line, result.left_alone


class FABRIK_OT_key_pose(OnRig, Operator):
    """Insert keys on the current frame for bones posed since their last key, the whole body, or selected bones"""

    bl_label = "Keyframe Solved Bones"

    bones: keyword(_RIG.key_bones)

    def run(self, context: Context, rig: Object) -> Done:
        keyed = key_pose.key_pose(context, rig, self.given("bones").get("bones", rig_settings(rig).key_bones))
        return f"Keyed {errors.bones_of(len(keyed))} on frame {context.scene.frame_current}", []


class FABRIK_OT_snap_targets(OnRig, Operator):
    """Move targets, pole targets and pins to the current pose, so that solving continues from it without a jump"""

    bl_label = "Snap Targets to Pose"
    why_not = staticmethod(why_no_solve)

    clamp: Bool(
        "Clamp Pose", "First clamp bones that exceed their limits, because solving would clamp them too", options=ASIDE
    )

    def run(self, context: Context, rig: Object) -> Done:
        count, stays = snap_targets.snap_targets(context, rig, clamp=self.clamp)
        return f"Targets snapped to the pose: {count}", stays


class FABRIK_OT_keep_pose(OnRig, Operator):
    """Store the current pose as the preferred pose. The rig stays close to it while it meets its targets"""

    bl_label = "Store Preferred Pose"

    def run(self, context: Context, rig: Object) -> Done:
        return solve.keep_pose(rig), []


class FABRIK_OT_use_control_rig(OnRig, Operator):
    """Find the controls that move this rig's deform bones, by rotating each one slightly, and pose the rig with them"""

    bl_label = "Set Up Control Rig"

    def run(self, context: Context, rig: Object) -> Done:
        return set_up.use_control_rig(context, rig)


_CONFIRM: Final = frozenset({"RET", "NUMPAD_ENTER", "SPACE"})
_CANCEL: Final = frozenset({"ESC", "RIGHTMOUSE"})
_SHIFTS: Final = frozenset({"LEFT_SHIFT", "RIGHT_SHIFT", "LEFT_CTRL", "RIGHT_CTRL"})
_PRECISE: Final = 0.1
# Properties that default to the rig's settings. They can be adjusted after a drag.
_KEPT: Final = ("keep_orientation", "spread")


@takes({name: getattr(_RIG, name) for name in ("reach", "bones", "spread_to", "root")})
class FABRIK_OT_drag(OnControls, Operator):
    """Drag a bone. The rig follows within its limits, and pinned bones stay in place"""

    bl_label = "Drag Bone"
    bl_options = {"REGISTER", "UNDO", "BLOCKING", "GRAB_CURSOR"}

    # The properties that are not hidden can be adjusted after a drag.
    bone: String("Bone", "The bone to drag. Defaults to the active bone", options={*ASIDE, "HIDDEN"})
    others: String(
        "Other Bones",
        "Bones that are dragged by the same distance, separated by commas. "
        "Defaults to the other selected bones when no bone is given",
        options={*ASIDE, "HIDDEN"},
    )
    translation: FloatVector(
        "Move", "Translation of the dragged point in world space", subtype="TRANSLATION", options=ASIDE
    )
    location: FloatVector(
        "Location",
        "Position of the point in world space, instead of its translation",
        subtype="XYZ",
        unit="LENGTH",
        options={*ASIDE, "HIDDEN"},
    )
    rotation: FloatVector(
        "Rotate",
        "Rotation of the bone in world space. If not set, the solver chooses the rotation",
        subtype="EULER",
        options=ASIDE,
    )
    point: Enum("Point", "Which end of the bone is dragged", items=POINTS[:2], options=ASIDE)
    keep_orientation: _RIG.keep_orientation
    spread: _RIG.spread
    frame: Int("Frame", "The frame that is dragged; this one unless given", options={*ASIDE, "HIDDEN"})
    pick: Bool("Pick", "Drag the bone under the mouse, and end when the button is released", options={*ASIDE, "HIDDEN"})

    @reports_errors
    def execute(self, context: Context) -> set[str]:
        """Drag by the given amount at once."""
        drag = self._begin(context)
        try:
            target = self.location if self.given("location") else drag.start + self.translation
            axis, angle = self.rotation.to_quaternion().to_axis_angle()
            drag.step(np.array(target), np.array(axis * angle) if self.given("rotation") else None)
            return self._finished(context, drag)
        except BaseException:
            drag.cancel()
            raise

    @reports_errors
    def invoke(self, context: Context, event: Event) -> set[str]:
        """Begin a drag that follows the mouse."""
        if context.area is None or context.area.type != "VIEW_3D" or context.region is None:
            return self.execute(context)
        self._view = mouse.DragView(context)
        self._selection = selection.SelectionKeeper(context)
        self._mouse = self._seen = self._view.press(event) if self.pick else self._view.mouse(event)
        try:
            # If neither a script nor the selection determines the bone, drag the one under the mouse.
            if self.pick or not (self.bone or selection.selected_bones(context, rig_at_hand(context))):
                self._pick(context)
            elif not self.bone:
                self._pick_trail(context)
            self.set_up_first(context)
            self._drag = self._begin(context)
        except BaseException:
            self._selection.restore(context)
            raise
        self._watch = Watch(rig_at_hand(context))
        place, ray = self._drag.start, self._view.ray(self._mouse)
        self._input = mouse.DragInput(place, self._drag.axes, ray, ray, self._view.pixel(place, self._mouse))
        lines = partial(drawing.drag_lines, self._input, self._drag)
        self._lines = DrawingHandlers((lambda: drawing.draw_over(lines()), "POST_VIEW"))
        self._lines.start()
        context.window_manager.modal_handler_add(self)
        self._timer = context.window_manager.event_timer_add(live.PAUSE, window=context.window)
        keys = ui_message(
            "LMB, Enter: confirm   RMB, Esc: cancel   X, Y, Z: axis   Shift X, Y, Z: plane   "
            "R: rotate   G: move   O: keep orientation   Ctrl: snap   Shift: precise   0-9: type"
        )
        notice = ui_message(self._drag.notice)
        context.workspace.status_text_set("   ".join(filter(None, [notice, keys])))
        self._show(context)
        return {"RUNNING_MODAL"}

    @reports_errors
    def modal(self, context: Context, event: Event) -> set[str]:
        """Follow the mouse and the keys; block other events."""
        if lost := self._watch.why_lost():
            self.cancel(context)
            raise errors.FabrikError(f"{lost}, so the drag was canceled: start it again")
        try:
            ends = event.type == "LEFTMOUSE" and event.value == ("RELEASE" if self.pick else "PRESS")
            if ends or (event.value == "PRESS" and event.type in _CONFIRM):
                if (turn := self._input.turn()) is not None:
                    axis = Vector(turn.tolist())
                    self.rotation = Quaternion(axis, axis.length).to_euler()
                ended = self._finished(context, self._drag)
                self._clear(context)
                return ended
            if event.value == "PRESS" and event.type in _CANCEL:
                self.cancel(context)
                return {"CANCELLED"}
            if event.value == "PRESS" and event.type == "O":
                self.keep_orientation = not self.keep_orientation
                self._drag.keep_orientation(context, keep=self.keep_orientation)
                self._step(context)
            elif self._is_handled(event):
                self._step(context)
        except BaseException:
            self.cancel(context)
            raise
        return {"RUNNING_MODAL"}

    def cancel(self, context: Context) -> None:
        """Restore everything; Blender also calls this, for example when its window closes."""
        if self._watch.why_lost():
            live.resume()
        else:
            self._drag.cancel()
            self._selection.restore(context)
        self._clear(context)

    def _begin(self, context: Context) -> "spread_drag.AnyDrag":
        rig = rig_at_hand(context)
        if not self.bone:
            self.bone = selection.clicked_bone(rig).name
            chosen, own = [each.name for each in selection.selected_bones(context, rig)], solved_bone(rig, self.bone)
            self.others = ",".join(name for name in chosen if name != own) if own in chosen else ""
        kept = rig_settings(rig)
        for name in set(_KEPT) - self.given(*_KEPT).keys():
            setattr(self, name, getattr(kept.drag, name))
        others = [bone.name for bone in selection.chosen_bones(context, rig, self.others)] if self.others else []
        how = self.given_or(kept, ["root"]) | self.given_or(kept.drag, ["reach", "bones", "spread_to"])
        settings = drag.DragSettings(how["reach"], how["bones"], how["root"], self.keep_orientation, tuple(others))
        frame = self.given("frame").get("frame")
        spread = spread_drag.Spread(self.spread, frame, how["spread_to"])
        return spread_drag.begin_any_drag(context, rig, self.bone, self.point, settings, spread)

    def _pick(self, context: Context) -> None:
        if self._pick_trail(context):
            return
        found: Any = bpy.ops.view3d.select(location=(int(self._mouse[0]), int(self._mouse[1])))
        bone = context.active_pose_bone
        if "FINISHED" not in found and bone is not None and not self.pick:
            return
        if "FINISHED" not in found or bone is None:
            raise armature.RigError("There is no bone under the mouse: move it over a bone, or select one")
        self.bone = bone.name
        matrix = rig_at_hand(context).matrix_world
        ends = [self._view.on_screen(np.array(matrix @ end)) for end in (bone.tail, bone.head)]
        distances = [np.inf if end is None else np.linalg.norm(end - self._mouse) for end in ends]
        self.point = "HEAD" if distances[1] < distances[0] and bone.parent is not None else "TAIL"

    def _pick_trail(self, context: Context) -> bool:
        """Choose the point of a trail under the mouse; returns whether there is one."""
        found = drawing.nearest_on_trails(context, rig_at_hand(context), self._view, self._mouse)
        if found is not None:
            self.bone, self.frame = found
            self.point = "TAIL"
        return found is not None

    def _is_handled(self, event: Event) -> bool:
        """Process an event; returns whether it changes anything."""
        if event.type == "TIMER":
            # One step for each redraw is enough. Joints also catch up with the next move of the mouse.
            return self._drag.result.is_catching_up and self._input.is_drawn
        if event.type in {"MOUSEMOVE", "INBETWEEN_MOUSEMOVE"}:
            self._move(event)
            # Pose the rig only for the last of several queued events. The others are intermediate.
            return event.type == "MOUSEMOVE"
        if event.type in _SHIFTS:
            self._input.snap, self._input.fine = event.ctrl, event.shift
            return True
        if event.value != "PRESS":
            return False
        entered = self._input
        if event.type in {"X", "Y", "Z"}:
            entered.press_axis(event.type, plane=event.shift and not entered.rotating)
        elif event.type in {"R", "G"}:
            entered.rotate(event.type == "R")
        elif event.type == "BACK_SPACE":
            entered.typing.erase()
        elif event.type == "TAB":
            entered.typing.next(entered.field_count)
        elif event.unicode:
            entered.typing.type(event.unicode)
        else:
            return False
        return True

    def _move(self, event: Event) -> None:
        """Process a mouse move; with Shift, only a tenth of it counts."""
        entered, now = self._input, self._view.mouse(event)
        entered.snap, entered.fine = event.ctrl, event.shift
        share = _PRECISE if event.shift and not event.ctrl else 1.0
        if entered.rotating:
            if (middle := self._view.on_screen(entered.place + entered.shift())) is not None:
                entered.add_turn(self._seen - middle, now - middle, share)
        else:
            self._mouse = self._mouse + share * (now - self._seen)
            entered.ray = self._view.ray(self._mouse)
        self._seen = now

    def _step(self, context: Context) -> None:
        entered = self._input
        entered.is_drawn = False
        result = self._drag.step(entered.place + entered.shift(), entered.turn(), entered.depth)
        # Store the actual movement of the point, so that repeating the drag with it gives the same pose.
        self.translation = entered.shift() + (0.0 if entered.depth is None else result.deeper * entered.depth)
        self._show(context)

    def _show(self, context: Context) -> None:
        context.area.header_text_set(
            f"{self.bone}: {ui_message(str(self._input))}   {ui_message(self._drag.result.line)}"
        )
        context.area.tag_redraw()

    def _clear(self, context: Context) -> None:
        self._watch.stop()
        context.window_manager.event_timer_remove(self._timer)
        self._lines.stop()
        context.workspace.status_text_set(None)
        if context.area is not None:
            context.area.header_text_set(None)
            context.area.tag_redraw()

    def _finished(self, context: Context, drag: "spread_drag.AnyDrag") -> set[str]:
        count = drag.finish(context)
        # A drag over time has changed other frames. Blender may have to play them to update the drawing.
        rig = shown_motion(context) if self.spread else None
        if rig is not None and is_played(rig):
            drawing.update_trails(context, rig)
        moved = f"{errors.bones_of(count)} rotated"
        done = f"{self.bone}: {ui_message(', '.join(filter(None, [moved, drag.result.line])))}"
        return report_all(self, done, map(ui_message, drag.left_alone))


CLASSES = (
    FABRIK_OT_add_effector,
    FABRIK_OT_own_targets,
    FABRIK_OT_remove_effector,
    FABRIK_OT_order_effectors,
    FABRIK_OT_pin,
    FABRIK_OT_pose_mode,
    FABRIK_OT_use_control_rig,
    FABRIK_OT_solve,
    FABRIK_OT_key_pose,
    FABRIK_OT_snap_targets,
    FABRIK_OT_keep_pose,
    FABRIK_OT_drag,
)
