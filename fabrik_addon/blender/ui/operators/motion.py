"""Operators of the Motion tab: markers, bakes, retargets and edits over time."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import bpy
from bpy.types import Context, Event, Object, Operator, OperatorFileListElement
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ....markers.files import POSE_SUFFIXES, SUFFIXES
from ....markers.mapping.marker_sets import PRESETS
from ... import OnUse
from ...settings import motion
from ...settings.declare import Bool, Enum, Float, Int, List, String
from ...settings.in_use import seen
from ...settings.rig import ASIDE, follow_take, imported_takes, rig_settings
from ...settings.why_not import mapped_markers, rig_at_hand, why_no_bake, why_no_mapped, why_no_rig
from ..translations import ui_message, ui_text
from . import base

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ....core import errors
    from ....human import naming_schemes
    from ....markers import clip as clips
    from ....markers import steps as work_steps
    from ....markers import whole_files
    from ....markers.files import any_file
    from ....retarget import files as pose_files
    from ....retarget.motion import Recorded
    from ... import retarget as retargeting
    from ...bake import bake as baking
    from ...capture import calibrate, import_markers, matching
    from ...edit import holds as holding
    from ...settings import selection
    from ..overlays import drawing
else:
    errors, clips, whole_files = map(OnUse, ("..core.errors", "..markers.clip", "..markers.whole_files"))
    any_file, naming_schemes, work_steps = map(
        OnUse, ("..markers.files.any_file", "..human.naming_schemes", "..markers.steps")
    )
    pose_files, retargeting, baking = map(OnUse, ("..retarget.files", ".retarget", ".bake.bake"))
    calibrate, import_markers, matching = map(
        OnUse, (".capture.calibrate", ".capture.import_markers", ".capture.matching")
    )
    holding, selection, drawing = map(OnUse, (".edit.holds", ".settings.selection", ".ui.overlays.drawing"))

_TIMINGS = (
    ("AUTO", "Automatic", "Set the scene to the recording's frame rate, unless the scene is already animated"),
    ("SET_SCENE_RATE", "Set Scene Rate", "Set the scene to the recording's frame rate, with one sample per frame"),
    ("KEEP_TIME", "Keep Time", "Keep the scene's frame rate and resample the recording"),
    ("KEEP_FRAMES", "Keep Frames", "Keep the scene's frame rate with one sample per frame. The speed may change"),
)
_HOLDS = (
    ("AUTO", "Automatic", "Import an armature if the file has poses, otherwise markers"),
    ("MARKERS", "Markers", "Import the markers or keypoints of the file as empties"),
    ("ARMATURE", "Armature", "Import the poses of the file as an armature to retarget from"),
)
# The suffixes of all files that can be imported.
MOTION_SUFFIXES: Final = (*SUFFIXES, *(suffix for suffix in POSE_SUFFIXES if suffix not in SUFFIXES))
# Properties that the dialog shows only if the file does not determine them, with the values that mean so.
_ASKED: Final = {"performer": "", "keypoints": "AUTO"}
# Properties that can be determined from the file.
_SELDOM: Final = ("holds", "units", "up_axis", *_ASKED, "rate", "start_frame", "first", "last", "scale")


@base.takes(motion.KEY_OPTIONS)
class Keying(base.InSteps):
    """An operator that bakes or retargets. Keywords that are not given use the rig's settings."""

    frame_start: Int("Start", "First frame. Defaults to that of the preview range or the source", options=ASIDE)
    frame_end: Int("End", "Last frame. Defaults to that of the preview range or the source", options=ASIDE)
    # The name of the new action; by default derived from that of the motion or the rig.
    action_name: String(options={*ASIDE, "HIDDEN"})

    def bake(self, context: Context, rig: Object, notes: "Sequence[str]" = (), **fixed: Any) -> "baking.Steps":
        """Bake; fixed: values of options."""
        settings = rig_settings(rig)
        options = self.given_or(settings.bake, motion.BakeOptions.__annotations__ | motion.KEY_OPTIONS)
        options |= self.given_or(settings.capture, motion.MarkerOptions.__annotations__) | fixed
        first, last = baking.chosen_range(context.scene, rig, options["source"])
        chosen = baking.BakeSettings(*self._frames(first, last), action_name=self.action_name, **options)
        return baking.bake_steps(context, rig, chosen, notes)

    def retarget(
        self, context: Context, rig: Object, source: Any, pairs: Any = (), notes: "Sequence[str]" = (), **fixed: Any
    ) -> "baking.Steps":
        """Retarget; fixed: values of options."""
        settings = rig_settings(rig)
        how = self.given_or(settings.retarget, motion.RETARGET_OPTIONS) | fixed
        bake = self.given_or(settings.bake, motion.KEY_OPTIONS) | {"action_name": self.action_name}
        first, last = baking.preview_range(context.scene) or (None, None)
        frames = self._frames(first, last)
        return retargeting.retarget_from(context, rig, source, frames, how, bake, pairs, notes=notes)

    def _frames(self, first: int | None, last: int | None) -> tuple[Any, Any]:
        """The frames that are given, else the defaults."""
        given = self.given("frame_start", "frame_end")
        return given.get("frame_start", first), given.get("frame_end", last)

    def done(self, result: "baking.BakeResult") -> set[str]:
        remarks = (*result.report.notes, *result.report.doubts)
        return base.report_all(self, "{}: {} ({})".format(*map(ui_message, result.lines)), map(ui_message, remarks))


class FABRIK_OT_import_markers(Keying, motion.ImportOptions, Operator, ImportHelper):
    """Import mocap markers as empties, or poses as an armature, and bake them to keyframes on a rig"""

    bl_label = "Import Mocap Markers"
    bl_options = {"REGISTER", "UNDO", "PRESET"}
    doing = "baking"

    filename_ext = SUFFIXES[0]
    filter_glob: String(default=";".join(f"*{suffix}" for suffix in MOTION_SUFFIXES))
    files: List(type=OperatorFileListElement, options={*ASIDE, "HIDDEN"})
    directory: String(subtype="DIR_PATH", options={*ASIDE, "HIDDEN"})
    rig: String(
        "Animate",
        "The armature that gets keys. If none is chosen, or there are several files, they are only imported",
        search=lambda _self, context, _typed: _armatures(context),
        options=ASIDE,
    )
    performer: String(
        "Performer",
        "If the file has several people, the label prefix of the person to import",
        search=lambda chosen, _context, _typed: chosen.performers.split("\n"),
        options=ASIDE,
    )
    performers: String(options={*ASIDE, "HIDDEN"})
    holds: Enum("Import", "What to import from files that contain both markers and poses", items=_HOLDS)
    rate: Float(
        "Rate",
        "Frames per second of the recording; 0 uses the rate in the file, or 30 if the file has none",
        default=0.0,
        min=0.0,
        soft_max=1000.0,
    )
    timing: Enum("Timing", "How to convert the recording's frame rate to the scene's", items=_TIMINGS)
    first: Int("First Sample", "First sample to import; the first one is 1", default=1, min=1, options=ASIDE)
    last: Int("Last Sample", "Last sample to import; 0 imports to the end", default=0, min=0, options=ASIDE)
    scale: Float("Scale", "Scale factor for all positions", default=1.0, min=1e-6, soft_min=0.01, soft_max=100.0)

    @classmethod
    def poll(cls, _context: Context) -> bool:
        return True

    def draw(self, context: Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        if len(self.files) < 2:
            there = _armatures(context)
            layout.prop(self, "rig", placeholder=ui_text("Only import" if there else "No armature in the scene"))
        asked = [name for name, unset in _ASKED.items() if getattr(self, name) != unset]
        for name in (*asked, "timing"):
            layout.prop(self, name)
        advanced = base.folded(layout, "Advanced", "import")
        for name in _SELDOM if advanced is not None else ():
            if name not in asked:
                advanced.prop(self, name)

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Show the file browser, or a small dialog for dropped files."""
        # Suggest the active armature, else the only selected one, else the only one in the scene.
        groups: Any = ([rig_at_hand(context)], context.selected_objects, context.scene.objects)
        for things in () if self.properties.is_property_set("rig") or len(self.files) > 1 else groups:
            rigs = [thing for thing in things if not why_no_rig(thing) and thing.get(motion.TAKE_DOUBTS) is None]
            rigs = [rig for rig in rigs if naming_schemes.match(rig.data.bones.keys())]
            self.rig = self.rig or (rigs[0].name if len(rigs) == 1 else "")
        return set(self.invoke_popup(context))

    @base.reports_errors
    def execute(self, context: Context) -> set[str]:
        """Read all files, then import them and animate the rig. If anything fails, the scene does not change."""
        at_once = bpy.app.background or not self.options.is_invoke
        try:
            recordings = [(path, self._read(path)) for path in _paths(self)]
        except clips.ChoiceError as error:
            if at_once:
                raise
            self.report({"INFO"}, ui_message(str(error)))
            choices = error.choices
            # Suggest the first performer who was not imported yet.
            there = [take.name for take in imported_takes(context.scene)]
            left = [choice for choice in choices if not any(take.endswith(f" {choice}") for take in there)]
            files, performers = [{"name": file.name} for file in self.files], "\n".join(choices)
            chosen = {"files": files, "performers": performers, error.option: (left or choices)[0]}
            operators: Any = bpy.ops
            operators.fabrik.import_markers("INVOKE_DEFAULT", **self.given(*self.as_keywords()) | chosen)
            return {"CANCELLED"}
        timing, rates = self.timing, sorted({recording.rate for _, recording in recordings})
        if timing == "AUTO":
            # Another rate would change the speed of existing animation.
            static = [take for take in imported_takes(context.scene) if take[motion.TAKE_STATIC]]
            still = {getattr(empty.animation_data, "action", None) for take in static for empty in take.objects}
            moving = any(action.users for action in bpy.data.actions if action not in still)
            timing = "KEEP_TIME" if moving else "SET_SCENE_RATE"
        if timing == "SET_SCENE_RATE" and rates[-1] - rates[0] > matching.SAME_RATE:
            raise import_markers.ImportMarkersError(
                f"The files have different frame rates ({rates[0]:g} to {rates[-1]:g} fps): choose Keep Time"
            )
        rig = selection.named(bpy.data.objects, self.rig, "object") if len(recordings) == 1 else None
        steps = self._imported(context, recordings, timing, rig)
        if rig is not None:
            if reason := why_no_rig(rig):
                raise errors.FabrikError(reason)
            base.set_up_first(self, context, rig)
            # Adjust Last Operation repeats all steps at once.
            if not at_once and not self.options.is_repeat:
                return self.start(context, steps, rig)
        return self.done(work_steps.finish(steps))

    def done(self, result: "baking.BakeResult | None") -> set[str]:
        # Blender drops reports that are made before the last step.
        for line, warnings in self._told:
            base.report_all(self, line, warnings)
        return {"FINISHED"} if result is None else super().done(result)

    def _imported(
        self, context: Context, recordings: "Sequence[tuple[Path, Any]]", timing: str, rig: Object | None
    ) -> "Generator[float, None, baking.BakeResult | None]":
        """Import recordings, and animate a rig if there is one."""
        how: Any = {"timing": timing, "start_frame": self.start_frame, "scale": self.scale}
        self._told: list[base.Done] = []
        follower, result = rig or rig_at_hand(context), None
        follower = None if why_no_rig(follower) else follower
        with import_markers.all_or_nothing(context, follower) as additions:
            for path, recording in recordings:
                before = matching.scene_rate(context.scene)
                made: Any
                if isinstance(recording, clips.Clip):
                    made = import_markers.import_clip(context, recording, **how)
                    if self.performer:
                        made.name += f" {self.performer}"
                    done = (
                        f"{recording.source}: {len(recording.names)} markers, {recording.frame_count} frames at "
                        f"{recording.rate:g} fps, {recording.units}, {recording.up_axis} up, imported as {made.name!r}"
                    )
                else:
                    made = retargeting.add_recorded(context, recording, path.stem, **how)
                    done = (
                        f"{path.name}: {len(recording.names)} bones, {len(recording.frames)} frames at "
                        f"{recording.rate:g} fps, imported as {made.name!r}"
                    )
                additions()
                # A static trial is only used to calibrate another take.
                is_static = made.get(motion.TAKE_STATIC, False)
                animated = None if is_static else rig
                # The report of the bake has the notes about the recording.
                notes = [] if animated else [*recording.notes, *recording.doubts]
                if rig and is_static:
                    notes.append("Only imported, because the person stands still")
                after = matching.scene_rate(context.scene)
                if abs(after - before) > matching.SAME_RATE:
                    notes.append(f"The scene's frame rate is now {after:g} fps (was {before:g})")
                self._told.append((ui_message(done), [f"{path.name}: {ui_message(note)}" for note in notes]))
                if animated:
                    result = yield from self._animate(context, animated, made, recording.notes)
                if follower and isinstance(made, Object):
                    settings = rig_settings(follower).retarget
                    settings.source = made
                    settings.pairs.clear()
                elif follower and not is_static:
                    follow_take(follower, made)
        return result

    def _animate(
        self, context: Context, rig: Object, made: "Object | bpy.types.Collection", notes: "Sequence[str]"
    ) -> "Generator[float, None, baking.BakeResult | None]":
        """Retarget an armature, or match, calibrate and bake a take."""
        yield 0.0
        # The reference frames in the rig's settings are those of another recording.
        if isinstance(made, Object):
            return (yield from self.retarget(context, rig, made, (), notes, reference=-1))
        line, doubts = matching.match_and_guess(context, rig, made)
        is_matched = len(mapped_markers(rig)) > 0
        self._told.append((ui_message(line), () if is_matched else [*map(ui_message, (*notes, *doubts))]))
        if not is_matched:
            return None
        capture = rig_settings(rig).capture
        options = self.given_or(capture, motion.CALIBRATION_OPTIONS) | {"reference": (0, 0)}
        steps = calibrate.calibrate_markers_steps(context, rig, static=capture.static, **options)
        self._told.append((ui_message((yield from work_steps.within(0.0, 0.4, steps)).line), ()))
        return (yield from work_steps.within(0.4, 1.0, self.bake(context, rig, notes, source="MARKERS")))

    def _read(self, path: Path) -> "clips.Clip | Recorded":
        units, up_axis, layout = (
            None if choice == "AUTO" else choice for choice in (self.units, self.up_axis, self.keypoints)
        )
        rate = self.rate or None
        if self.holds == "ARMATURE" or (self.holds == "AUTO" and pose_files.holds_poses(path)):
            return pose_files.read_recorded(path, up_axis, rate).part(self.first, self.last)
        clip = any_file.read_markers(path, units, up_axis, layout, rate)
        clip = import_markers.choose_performer(clip, self.performer)
        return clips.part_of(clip, self.first, self.last)


def _armatures(context: Context) -> list[str]:
    """The names of the scene's armatures."""
    return [thing.name for thing in context.scene.objects if thing.type == "ARMATURE"]


def _paths(chosen: Any) -> list[Path]:
    """The files that were chosen in the file browser, or the file that a script has set."""
    if names := [file.name for file in chosen.files if file.name]:
        return [Path(bpy.path.abspath(chosen.directory)) / name for name in names]
    return [base.chosen_path(chosen)]


_PRESETS = (
    ("AUTO", "Automatic", "Use the marker set that fits the labels best"),
    *((key, preset.title, preset.description) for key, preset in PRESETS.items()),
)


class FABRIK_OT_match_markers(base.OnRig, Operator):
    """Add the scene's markers to the rig's list, and find the bone of each marker by its label"""

    bl_label = "Match Markers to Bones"

    preset: Enum("Marker Set", "The marker set that the labels belong to", items=_PRESETS)
    take: String(
        "Take",
        "Collection of the markers, or an armature whose bones are the markers. Defaults to the "
        "rig's take, then the collection imported last, then the selected empties",
        search=lambda _self, context, _typed: [*bpy.data.collections.keys(), *_armatures(context)],
    )
    keep: Bool("Keep Existing", "Keep markers that already have a bone")
    guess: Bool(
        "Guess by Motion",
        "Assign markers with unknown labels to the bones they move with, and give them a low weight. Requires some "
        "known markers",
        default=True,
    )

    def run(self, context: Context, rig: Object) -> base.Done:
        base.set_up_first(self, context)
        things: Any = [*bpy.data.collections, *context.scene.objects]
        take = selection.named(things, self.take, "collection")
        return matching.match_and_guess(context, rig, take, guess=self.guess, preset=self.preset, keep=self.keep)


class FABRIK_OT_follow_take(base.OnRig, Operator):
    """Use another take in the panels below. The settings of the current take are kept"""

    bl_label = "Choose Take"

    take: String("Take", "Collection of the take's markers", options=ASIDE)

    def run(self, _context: Context, rig: Object) -> base.Done:
        follow_take(rig, selection.named(bpy.data.collections, self.take, "collection"))
        return f"{rig.name!r} now follows {self.take!r}", []


class FABRIK_OT_marker_bone(base.OnRig, Operator):
    """Assign the marker selected in the list to the active bone"""

    bl_label = "Assign Marker to Active Bone"

    @staticmethod
    def why_not(rig: Object) -> str:
        if not len(rig_settings(rig).capture.markers):
            return "There is no marker in the list: match the markers first"
        return "" if rig.data.bones.active is not None else "No bone is active: click one in Pose mode first"

    def run(self, context: Context, rig: Object) -> base.Done:
        capture = rig_settings(rig).capture
        marker = capture.markers[min(max(capture.active_marker, 0), len(capture.markers) - 1)]
        marker.bone, marker.enabled, marker.guess = rig.data.bones.active.name, True, -1.0
        return f"{marker.name!r} is now assigned to bone {marker.bone!r}", []


class FABRIK_OT_save_marker_map(base.OnJson, Operator, ExportHelper):
    """Save the marker mapping to a JSON file"""

    bl_label = "Save Marker Map"
    bl_options = {"REGISTER"}
    why_not = staticmethod(why_no_mapped)

    def run(self, context: Context, rig: Object) -> base.Done:
        return f"{matching.save_map(rig, base.chosen_path(self))} markers saved to {base.chosen_path(self).name}", []


class FABRIK_OT_load_marker_map(base.OnJson, Operator, ImportHelper):
    """Load the marker mapping from a JSON file"""

    bl_label = "Load Marker Map"

    def run(self, context: Context, rig: Object) -> base.Done:
        found, count = matching.load_map(rig, base.chosen_path(self))
        return f"Assigned {found} of the map's {count} markers to bones", []


@base.takes(motion.CALIBRATION_OPTIONS)
class FABRIK_OT_calibrate_markers(base.InSteps, Operator):
    """Measure the marker positions on their bones and the person's size"""

    bl_label = "Calibrate Markers"
    why_not = staticmethod(why_no_mapped)
    doing = "calibrating"

    static: String(
        "Static Take",
        "Collection with markers of the same person standing still. Defaults to the rig's static take",
        options={*ASIDE, "HIDDEN"},
    )

    def steps(self, context: Context) -> "Generator[float, None, calibrate.CalibrationResult]":
        settings = rig_settings(rig_at_hand(context)).capture
        options = self.given_or(settings, motion.CALIBRATION_OPTIONS)
        static = selection.named(bpy.data.collections, self.static, "collection") or settings.static
        return calibrate.calibrate_markers_steps(context, rig_at_hand(context), static=static, **options)

    def done(self, result: "calibrate.CalibrationResult") -> set[str]:
        return base.report_all(self, ui_message(result.line), map(ui_message, result.doubts))


class OnReport(base.OnRig):
    """An operator on the report of the rig's last bake."""

    @staticmethod
    def why_not(rig: Object) -> str:
        return "" if rig_settings(rig).capture.report is not None else "There is no report: bake the markers first"


class FABRIK_OT_export_report(OnReport, Operator, ExportHelper):
    """Save the report of the rig's last bake: errors per marker and frame, gaps and limits"""

    bl_label = "Export Bake Report"
    bl_options = {"REGISTER"}

    filename_ext = ".csv"
    filter_glob: String(default="*.csv")

    def run(self, context: Context, rig: Object) -> base.Done:
        path = base.chosen_path(self)
        whole_files.write_text(path, rig_settings(rig).capture.report.as_string())
        return f"Report saved to {path.name}", []


class FABRIK_OT_worst_frame(OnReport, Operator):
    """Go to the frame with the largest error in the last bake"""

    bl_label = "Go to Worst Frame"

    marker: String("Marker", "Go to the worst frame of this marker instead of the whole rig", options=ASIDE)

    def run(self, context: Context, rig: Object) -> base.Done:
        capture = rig_settings(rig).capture
        if self.marker and self.marker not in capture.markers:
            raise errors.FabrikError(f"Marker {self.marker!r} is not in the list: choose another")
        frame = (capture.markers[self.marker] if self.marker else capture).worst_frame
        context.scene.frame_set(frame)
        return f"Frame {frame}", []


@base.takes(motion.BakeOptions.__annotations__ | motion.MarkerOptions.__annotations__)
class FABRIK_OT_bake(Keying, Operator):
    """Bake the rig's targets or markers to keyframes"""

    bl_label = "Bake to Keyframes"
    why_not = staticmethod(why_no_bake)
    doing = "baking"

    def steps(self, context: Context) -> "baking.Steps":
        return self.bake(context, rig_at_hand(context))


class FABRIK_OT_match_bones(base.OnRig, Operator):
    """Map the source's bones to the rig's bones by name"""

    bl_label = "Map Bones"

    def run(self, context: Context, rig: Object) -> base.Done:
        base.set_up_first(self, context)
        return f"{len(retargeting.match_bones(context, rig))} bones mapped", []


class FABRIK_OT_save_bone_map(base.OnJson, Operator, ExportHelper):
    """Save the bone mapping to a JSON file"""

    bl_label = "Save Bone Map"
    bl_options = {"REGISTER"}

    def run(self, _context: Context, rig: Object) -> base.Done:
        return f"{retargeting.save_pairs(rig, base.chosen_path(self))} bones saved to {base.chosen_path(self).name}", []


class FABRIK_OT_load_bone_map(base.OnJson, Operator, ImportHelper):
    """Load the bone mapping from a JSON file"""

    bl_label = "Load Bone Map"

    def run(self, _context: Context, rig: Object) -> base.Done:
        return f"{retargeting.load_pairs(rig, base.chosen_path(self))} bones loaded", []


@base.takes(motion.RETARGET_OPTIONS)
class FABRIK_OT_retarget(Keying, Operator):
    """Copy another armature's motion to the rig as keyframes"""

    bl_label = "Retarget Animation"
    doing = "retargeting"

    source: String(
        "Source",
        "The armature to retarget from, or a .bvh, .fbx, .glb, .usd, .npz or .mvnx file. Defaults to the rig's source",
        options=ASIDE,
    )

    def steps(self, context: Context) -> "baking.Steps":
        rig = rig_at_hand(context)
        own = rig_settings(rig).retarget.source
        source = bpy.data.objects.get(self.source) or self.source or own
        # The list of bone pairs is only valid for the rig's own source.
        return self.retarget(context, rig, source, retargeting.pairs_of(rig) if source == own else ())


class FABRIK_OT_add_hold(base.OnRig, Operator):
    """Keep a hand or foot in place over a range of frames by changing keys within the joint limits"""

    bl_label = "Add Hold"

    bone: String("Bone", "The bone to hold. Defaults to the active bone", options=ASIDE)
    point: Enum("Point", "The end of the bone that is held", items=motion.POINTS[:2])
    hold_rotation: Bool("Hold Rotation", "Hold the rotation as well", default=True)
    first: Int("First", "First frame of the hold. Defaults to the current frame")
    last: Int("Last", "Last frame of the hold. Defaults to 20 frames after the first")
    ease: Int("Ease", "Frames to ease in and out of the hold", default=10, min=0)
    target: String("Object", "The object that the bone stays with. Defaults to world space")
    target_bone: String("Object's Bone", "If the object is an armature, the bone to stay with")

    @base.reports_errors
    def invoke(self, context: Context, event: Event) -> set[str]:
        """Show a dialog for the frames that names the bone."""
        bone = self.bone or selection.clicked_bone(rig_at_hand(context)).name
        self._set_frames(context)
        return set(context.window_manager.invoke_props_dialog(self, title=f"{ui_text(self.bl_label)}: {bone}"))

    def draw(self, context: Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        for name in ("first", "last", "ease"):
            layout.prop(self, name)
        layout.prop_search(self, "target", context.scene, "objects")
        # If two objects have the same name, `bpy.data` prefers the local one, like `run`. Scenes do not.
        target: Object | None = bpy.data.objects.get(self.target)
        if target is not None and target.type == "ARMATURE":
            layout.prop_search(self, "target_bone", target.data, "bones")
        if (advanced := base.folded(layout, "Advanced", "hold")) is not None:
            advanced.prop(self, "point")
            advanced.prop(self, "hold_rotation")

    def _set_frames(self, context: Context) -> None:
        self.first = self.given("first").get("first", context.scene.frame_current)
        self.last = self.given("last").get("last", self.first + 20)

    def run(self, context: Context, rig: Object) -> base.Done:
        self._set_frames(context)
        bone = self.bone or selection.clicked_bone(rig).name
        target = selection.named(bpy.data.objects, self.target, "object")
        settings = holding.HoldSettings(self.point, self.hold_rotation, self.ease, target, self.target_bone)
        missed = holding.add_hold(context, rig, bone, (self.first, self.last), settings)
        return f"{bone!r} is now held from frame {self.first} to {self.last}", [missed] if missed else []


class FABRIK_OT_remove_hold(base.OnRig, Operator):
    """Restore the keys that the hold replaced. Keys changed since then are kept"""

    bl_label = "Remove Hold"

    @staticmethod
    def why_not(rig: Object) -> str:
        return "" if len(rig_settings(rig).holds) else f"{rig.name!r} has no hold: add one first"

    index: Int("Number", "Index of the hold, starting at 0", min=0)

    def run(self, context: Context, rig: Object) -> base.Done:
        name, left = holding.remove_hold(context, rig, self.index)
        return f"Removed hold {name!r}", [left] if left else []


class FABRIK_OT_hold_contacts(base.OnRig, Operator):
    """Hold the feet while they touch the floor in the scene's frame range. Replaces holds that it added there before"""

    bl_label = "Hold Planted Feet"

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Ask for confirmation before keys are changed."""
        return base.ask_first(
            self, context, event, ui_text("Hold Planted Feet?"), ui_text("This changes keys of the legs")
        )

    def run(self, context: Context, rig: Object) -> base.Done:
        warnings = holding.hold_feet(context, rig)
        return f"Holds added: {len(warnings)}", list(filter(None, warnings))


class FABRIK_OT_work_out_trails(base.OnRig, Operator):
    """Recalculate trails of control rigs and NLA strips by playing the frames"""

    bl_label = "Update Trails"

    @staticmethod
    def why_not(rig: Object) -> str:
        return "" if seen(rig).show_trails else f"No trails of {rig.name!r} are shown: turn on Trails first"

    def run(self, context: Context, rig: Object) -> base.Done:
        if not drawing.update_trails(context, rig):
            raise errors.FabrikError(f"{rig.name!r} has no keys to edit: bake or key some motion first")
        return f"Updated the trails of {rig.name!r}", []


CLASSES = (
    FABRIK_OT_import_markers,
    FABRIK_OT_match_markers,
    FABRIK_OT_follow_take,
    FABRIK_OT_marker_bone,
    FABRIK_OT_save_marker_map,
    FABRIK_OT_load_marker_map,
    FABRIK_OT_calibrate_markers,
    FABRIK_OT_export_report,
    FABRIK_OT_worst_frame,
    FABRIK_OT_bake,
    FABRIK_OT_match_bones,
    FABRIK_OT_save_bone_map,
    FABRIK_OT_load_bone_map,
    FABRIK_OT_retarget,
    FABRIK_OT_add_hold,
    FABRIK_OT_remove_hold,
    FABRIK_OT_hold_contacts,
    FABRIK_OT_work_out_trails,
)
