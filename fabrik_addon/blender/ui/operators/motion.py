"""Operators of the Motion tab: markers, bakes, retargets and edits over time."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import bpy
from bpy.props import BoolProperty, CollectionProperty, EnumProperty, FloatProperty, IntProperty, StringProperty
from bpy.types import Context, Event, Operator, OperatorFileListElement
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ....markers.files.suffixes import POSE_SUFFIXES, SUFFIXES
from ....markers.mapping.marker_sets import PRESETS
from ...settings.bake_options import KEY_OPTIONS, OPTIONS, RETARGET_OPTIONS, BakeOptions, MarkerOptions
from ...settings.control import control_rig
from ...settings.in_use import seen
from ...settings.markers import CALIBRATION_OPTIONS, TAKE_STATIC, ImportOptions
from ...settings.rig import ASIDE, POINTS, rig_settings
from ...settings.why_not import named, of_a_rig, rig_at_hand, why_no_bake, why_no_mapped, why_no_rig
from ..overlays.later import shown_motion
from ..translations import ui_message, ui_text
from .base import Done, InSteps, OnJson, OnRig, chosen_path, folded, report_all, reports_errors, takes

if TYPE_CHECKING:
    from collections.abc import Generator

    from ....markers.clip import Clip
    from ....retarget.files.recorded import Recorded
    from ...bake.bake import Steps
    from ...bake.report import BakeResult
    from ...capture.calibrate import CalibrationResult


_TIMINGS = (
    ("AUTO", "Automatic", "Set the scene to the recording's frame rate, unless the scene is already animated"),
    ("SET_SCENE_RATE", "Set Scene Rate", "Set the scene to the recording's frame rate, with one sample per frame"),
    ("KEEP_TIME", "Keep Time", "Keep the scene's frame rate and resample the recording"),
    (
        "KEEP_FRAMES",
        "Keep Frames",
        "Keep the scene's frame rate with one sample per frame. The playback speed may change",
    ),
)
_HOLDS = (
    ("AUTO", "Automatic", "Import an armature if the file has poses, otherwise markers"),
    ("MARKERS", "Markers", "Import the markers or keypoints of the file as empties"),
    ("ARMATURE", "Armature", "Import the poses of the file as an armature to retarget from"),
)
# The suffixes of all files that can be imported.
MOTION_SUFFIXES: Final = (*SUFFIXES, *(suffix for suffix in POSE_SUFFIXES if suffix not in SUFFIXES))
# Frames per second. Smaller differences are ignored, because rates have single precision.
_SAME_RATE: Final = 1e-3
# Properties that the file itself can determine.
_SELDOM: Final = ("holds", "units", "up_axis", "keypoints", "rate", "start_frame", "first", "last", "scale")
# Properties to pass on if the dialog must be shown again.
_CHOSEN: Final = ("timing", "directory", "filepath", *_SELDOM)


class FABRIK_OT_import_markers(ImportOptions, Operator, ImportHelper):
    """Import motion capture markers as animated empties"""

    bl_idname = "fabrik.import_markers"
    bl_label = "Import Mocap Markers"
    bl_options = {"REGISTER", "UNDO", "PRESET"}

    filename_ext = SUFFIXES[0]
    filter_glob: StringProperty(default=";".join(f"*{suffix}" for suffix in MOTION_SUFFIXES), options={"HIDDEN"})
    files: CollectionProperty(type=OperatorFileListElement, options={"HIDDEN", "SKIP_SAVE"})
    directory: StringProperty(subtype="DIR_PATH", options={"HIDDEN", "SKIP_SAVE"})
    performer: StringProperty(
        name="Performer",
        description="If the file has several people, the label prefix of the person to import",
        search=lambda chosen, context, _typed: performers_at_hand(chosen, context),
        options={"SKIP_SAVE"},
    )
    holds: EnumProperty(
        name="Import", description="What to import from files that contain both markers and poses", items=_HOLDS
    )
    rate: FloatProperty(
        name="Rate",
        description="Frames per second of the recording; 0 uses the rate in the file, or 30 if the file has none",
        default=0.0,
        min=0.0,
        soft_max=1000.0,
    )
    timing: EnumProperty(
        name="Timing", description="How to convert the recording's frame rate to the scene's", items=_TIMINGS
    )
    first: IntProperty(
        name="First Sample",
        description="First sample of the recording to import; the first one is 1",
        default=1,
        min=1,
        options={"SKIP_SAVE"},
    )
    last: IntProperty(
        name="Last Sample",
        description="Last sample of the recording to import; 0 imports to the end",
        default=0,
        min=0,
        options={"SKIP_SAVE"},
    )
    scale: FloatProperty(
        name="Scale", description="Scale factor for all positions", default=1.0, min=1e-6, soft_min=0.01, soft_max=100.0
    )

    def draw(self, _context: Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        # The layout can only be chosen in the dialog, or by a script.
        asked = ("performer", "timing") if self.keypoints == "AUTO" else ("keypoints", "performer", "timing")
        for name in asked:
            layout.prop(self, name)
        advanced = folded(layout, "Advanced", "import")
        for name in _SELDOM if advanced is not None else ():
            if name not in asked:
                advanced.prop(self, name)

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Show the file browser, or a small dialog for dropped files."""
        if self.files or self.properties.is_property_set("filepath"):
            return set(self.invoke_popup(context))
        return set(super().invoke(context, event))

    @reports_errors
    def execute(self, context: Context) -> set[str]:
        """Read all files, then import them. If a file can't be read, the scene does not change."""
        from ....markers.files.layouts import LayoutError
        from ...capture.import_markers import SeveralPerformersError
        from ...capture.matching import scene_rate

        try:
            recordings = [(path, self._read(path)) for path in _paths(self)]
        except (SeveralPerformersError, LayoutError) as error:
            if bpy.app.background or not self.options.is_invoke:
                raise
            if isinstance(error, LayoutError):
                return self._ask("The points have no names: choose their layout", keypoints=error.choices[0])
            count = len(error.names)
            return self._ask(f"There are {count} performers: choose whose markers to import", performer=error.names[0])
        timing = self.timing
        if timing == "AUTO":
            # Another rate would change the speed of existing animation.
            timing = "KEEP_TIME" if any(action.users for action in bpy.data.actions) else "SET_SCENE_RATE"
        _check_rates([recording for _, recording in recordings], timing)
        before = scene_rate(context.scene)
        for path, recording in recordings:
            self._import(context, path, recording, timing)
        after = scene_rate(context.scene)
        if abs(after - before) > _SAME_RATE:
            self.report({"WARNING"}, ui_message(f"The scene's frame rate is now {after:g} fps (was {before:g})"))
        return {"FINISHED"}

    def _import(self, context: Context, path: Path, recording: "Clip | Recorded", timing: str) -> None:
        """Add the data of one file to the scene, and report it."""
        from ....markers.clip import Clip
        from ...capture.import_markers import import_clip
        from ...retarget.door import add_recorded

        how: Any = {"timing": timing, "start_frame": self.start_frame, "scale": self.scale}
        notes = [f"{path.name}: {ui_message(note)}" for note in recording.notes]
        if isinstance(recording, Clip):
            notes += [f"{path.name}: {ui_message(doubt)}" for doubt in recording.doubts]
            take = import_clip(context, recording, **how)
            _choose(context, take)
            report_all(self, ui_message(_summary(recording, take.name)), notes)
            return
        rig, source = rig_at_hand(context), add_recorded(context, recording, path.stem, **how)
        if not why_no_rig(rig) and rig is not None:
            settings = rig_settings(rig).retarget
            settings.source = source
            settings.pairs.clear()
        report_all(self, ui_message(_body_summary(path, recording, source.name)), notes)

    def _ask(self, message: str, **values: str) -> set[str]:
        """Show the dialog again, because the user must choose something."""
        self.report({"INFO"}, ui_message(message))
        chosen = {name: getattr(self, name) for name in _CHOSEN}
        files = [{"name": file.name} for file in self.files]
        operators: Any = bpy.ops
        operators.fabrik.import_markers("INVOKE_DEFAULT", **{**chosen, **values}, files=files)
        return {"CANCELLED"}

    def _read(self, path: Path) -> "Clip | Recorded":
        from ....markers.files.any_file import read_markers
        from ....retarget.files.any_file import holds_poses, read_recorded
        from ...capture.import_markers import choose_performer, part_of

        units, up_axis, layout = (
            None if choice == "AUTO" else choice for choice in (self.units, self.up_axis, self.keypoints)
        )
        rate = self.rate or None
        if self.holds == "ARMATURE" or (self.holds == "AUTO" and holds_poses(path)):
            return read_recorded(path, up_axis, rate).part(self.first, self.last)
        clip = choose_performer(read_markers(path, units, up_axis, layout, rate), self.performer)
        return part_of(clip, self.first, self.last)


def _choose(context: Context, take: bpy.types.Collection) -> None:
    """Switch the current rig to a take, unless it is a static trial."""
    from ...capture.takes import follow_take

    rig = rig_at_hand(context)
    if rig is not None and not why_no_rig(rig) and not take[TAKE_STATIC]:
        follow_take(rig, take)


def _paths(chosen: Any) -> list[Path]:
    """The files that were chosen in the file browser, or the file that a script has set."""
    names = [file.name for file in chosen.files if file.name]
    if names:
        return [Path(bpy.path.abspath(chosen.directory)) / name for name in names]
    return [chosen_path(chosen)]


def performers_at_hand(chosen: Any, context: Context) -> list[str]:
    """The performers in the files that were chosen in the file browser or dropped."""
    params: Any = getattr(context.space_data, "params", None)
    paths = _paths(chosen) if params is None else [Path(os.fsdecode(params.directory)) / params.filename]
    return [name for path in paths if path.is_file() for name in _performers_in(path, path.stat().st_mtime_ns)]


@lru_cache(maxsize=16)
def _performers_in(path: Path, _changed: int) -> tuple[str, ...]:
    """The performers in one file, cached until the file changes; _changed: its modification time in nanoseconds."""
    from ....core.errors import FabrikError
    from ....markers.files.any_file import performers, read_markers

    # The import will report errors in a file.
    with suppress(FabrikError):
        return performers(read_markers(path))
    return ()


def _check_rates(clips: "Sequence[Clip | Recorded]", timing: str) -> None:
    """Raise ImportMarkersError if the files would set the scene to two different rates."""
    from ...capture.import_markers import ImportMarkersError

    rates = sorted({clip.rate for clip in clips})
    if timing == "SET_SCENE_RATE" and len(rates) > 1:
        raise ImportMarkersError(
            f"The files have different frame rates ({rates[0]:g} to {rates[-1]:g} fps): choose Keep Time"
        )


def _body_summary(path: Path, body: "Recorded", name: str) -> str:
    return f"{path.name}: {len(body.names)} bones, {len(body.frames)} frames at {body.rate:g} fps, imported as {name!r}"


def _summary(clip: "Clip", take: str) -> str:
    return (
        f"{clip.source}: {len(clip.names)} markers, {clip.frame_count} frames at {clip.rate:g} "
        f"fps, {clip.units}, {clip.up_axis} up, imported as {take!r}"
    )


_PRESETS = (
    ("AUTO", "Automatic", "Use the marker set that fits the labels best"),
    *((key, preset.title, preset.description) for key, preset in PRESETS.items()),
)
# The maximum number of labels without a bone that a message names. It gives the number of others.
_NAMED = 6


class FABRIK_OT_match_markers(OnRig, Operator):
    """Add the scene's markers to the rig's list, and find the bone of each marker by its label"""

    bl_idname = "fabrik.match_markers"
    bl_label = "Match Markers to Bones"

    preset: EnumProperty(name="Marker Set", description="The marker set that the labels belong to", items=_PRESETS)
    take: StringProperty(
        name="Take",
        description="Collection of the markers, or an armature whose bones are the markers. Defaults to the "
        "collection imported last, then the rig's collection, then the selected empties",
        search=lambda _self, context, _typed: [
            *bpy.data.collections.keys(),
            *(thing.name for thing in context.scene.objects if thing.type == "ARMATURE"),
        ],
    )
    keep: BoolProperty(name="Keep Existing", description="Keep markers that already have a bone")
    guess: BoolProperty(
        name="Guess by Motion",
        description="Assign markers with unknown labels to the bones they move with, at a low weight. "
        "Requires some known markers",
        default=True,
    )

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...capture.matching import guess_markers, match_markers, matching_doubts_of, of_take
        from ...capture.takes import take_name

        objects, is_object = context.scene.objects, self.take not in bpy.data.collections
        armature = named(objects, self.take, "object") if is_object and self.take in objects else None
        take = None if armature is not None else named(bpy.data.collections, self.take, "collection")
        found = match_markers(context, rig, preset=self.preset, take=take, take_armature=armature, keep=self.keep)
        guessed = [guess.entry.marker for guess in guess_markers(context, rig)] if self.guess else []
        labels = PRESETS[found.preset].title if found.preset else "no known labels"
        free = tuple(entry.name for entry in rig_settings(rig).capture.markers if not entry.bone)
        by_motion = f", {len(guessed)} guessed from motion" if guessed else ""
        what = (
            f"{len(found.markers)} markers{of_take(take_name(rig))} matched to bones "
            f"({labels}){by_motion}{_listed(free)}"
        )
        doubts = matching_doubts_of(rig)
        rig_settings(rig).capture.doubts = "\n".join(doubts)
        return what, doubts


class FABRIK_OT_follow_take(OnRig, Operator):
    """Use another take in the panels below. The settings of the current take are kept"""

    bl_idname = "fabrik.follow_take"
    bl_label = "Choose Take"

    take: StringProperty(name="Take", description="Collection of the take's markers", options={"SKIP_SAVE"})

    def run(self, _context: Context, rig: bpy.types.Object) -> Done:
        from ...capture.takes import follow_take

        follow_take(rig, named(bpy.data.collections, self.take, "collection"))
        return f"{rig.name!r} now follows {self.take!r}", []


def _listed(labels: tuple[str, ...]) -> str:
    from ....core.errors import first_few

    if not labels:
        return ""
    return f"; without a bone: {first_few(labels, _NAMED)}"


@of_a_rig
def _why_no_marker(rig: bpy.types.Object) -> str:
    """Why a marker can't be assigned to the active bone, and what to do; "" if it can."""
    if not len(rig_settings(rig).capture.markers):
        return "There is no marker in the list: match the markers first"
    return "" if rig.data.bones.active is not None else "No bone is active: click one in Pose mode"


class FABRIK_OT_marker_bone(OnRig, Operator):
    """Assign the marker selected in the list to the active bone"""

    bl_idname = "fabrik.marker_bone"
    bl_label = "Assign Marker to Active Bone"
    why_not = staticmethod(_why_no_marker)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        capture = rig_settings(rig).capture
        marker = capture.markers[min(max(capture.active_marker, 0), len(capture.markers) - 1)]
        marker.bone, marker.enabled, marker.guess = rig.data.bones.active.name, True, -1.0
        return f"{marker.name!r} is now assigned to bone {marker.bone!r}", []


class FABRIK_OT_save_marker_map(OnJson, Operator, ExportHelper):
    """Save the marker mapping to a JSON file"""

    bl_idname = "fabrik.save_marker_map"
    bl_label = "Save Marker Map"
    bl_options = {"REGISTER"}
    why_not = staticmethod(why_no_mapped)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...capture.matching import save_map

        return f"{save_map(rig, chosen_path(self))} markers saved to {chosen_path(self).name}", []


class FABRIK_OT_load_marker_map(OnJson, Operator, ImportHelper):
    """Load the marker mapping from a JSON file"""

    bl_idname = "fabrik.load_marker_map"
    bl_label = "Load Marker Map"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...capture.matching import load_map

        found, count = load_map(rig, chosen_path(self))
        return f"Assigned {found} of the map's {count} markers to bones", []


@takes(CALIBRATION_OPTIONS)
class FABRIK_OT_calibrate_markers(InSteps, Operator):
    """Measure the marker positions on their bones and the person's size"""

    bl_idname = "fabrik.calibrate_markers"
    bl_label = "Calibrate Markers"
    why_not = staticmethod(why_no_mapped)
    doing = "calibrating"

    static: StringProperty(
        name="Static Take",
        description="Collection with markers of the same person standing still. Defaults to the rig's static take",
        options={"SKIP_SAVE", "HIDDEN"},
    )

    def steps(self, context: Context) -> "Generator[float, None, CalibrationResult]":
        """The steps of the calibration."""
        from ...capture.calibrate import calibrate_markers_steps

        settings = rig_settings(rig_at_hand(context)).capture
        options: dict[str, Any] = {name: getattr(settings, name) for name in CALIBRATION_OPTIONS} | self.given(
            *CALIBRATION_OPTIONS
        )
        static = named(bpy.data.collections, self.static, "collection") or settings.static
        return calibrate_markers_steps(context, rig_at_hand(context), static=static, **options)

    def done(self, result: "CalibrationResult") -> set[str]:
        """Report the result."""
        report_all(self, ui_message(result.line), map(ui_message, result.doubts))
        return {"FINISHED"}


@of_a_rig
def _why_no_report(rig: bpy.types.Object) -> str:
    """Why a rig has no report; "" if it has one."""
    return "" if rig_settings(rig).capture.report is not None else "There is no report: bake the markers first"


class FABRIK_OT_export_report(OnRig, Operator, ExportHelper):
    """Save the report of the rig's last bake: errors per marker and frame, gaps and limits"""

    bl_idname = "fabrik.export_report"
    bl_label = "Export Bake Report"
    bl_options = {"REGISTER"}
    why_not = staticmethod(_why_no_report)

    filename_ext = ".csv"
    filter_glob: StringProperty(default="*.csv", options={"HIDDEN"})

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...bake.report import export_report

        path = chosen_path(self)
        export_report(rig, path)
        return f"Report saved to {path.name}", []


class FABRIK_OT_worst_frame(OnRig, Operator):
    """Go to the frame with the largest error in the last bake"""

    bl_idname = "fabrik.worst_frame"
    bl_label = "Go to Worst Frame"
    why_not = staticmethod(_why_no_report)

    marker: StringProperty(
        name="Marker",
        description="Go to the worst frame of this marker instead of the whole rig",
        options={"SKIP_SAVE"},
    )

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...rig.armature import RigError

        capture = rig_settings(rig).capture
        if self.marker and self.marker not in capture.markers:
            raise RigError(f"Marker {self.marker!r} is not in the list: choose another")
        frame = (capture.markers[self.marker] if self.marker else capture).worst_frame
        context.scene.frame_set(frame)
        return f"Frame {frame}", []


@takes(KEY_OPTIONS)
class ReportsBake:
    """An operator whose steps return the result of a bake. Keywords that are not given use the rig's settings."""

    frame_start: IntProperty(
        name="Start", description="First frame. Defaults to the start of the preview range, or of the source"
    )
    frame_end: IntProperty(
        name="End", description="Last frame. Defaults to the end of the preview range, or of the source"
    )
    action_name: StringProperty(
        name="Action Name", description="Name of the new action. Defaults to the rig's name", options=ASIDE
    )

    def done(self, result: "BakeResult") -> set[str]:
        """Report the result."""
        warnings = (*result.warnings, *result.report.doubts)
        report_all(self, "{}: {} ({})".format(*map(ui_message, result.lines)), map(ui_message, warnings))
        return {"FINISHED"}


@takes(BakeOptions.__annotations__ | MarkerOptions.__annotations__)
class FABRIK_OT_bake(ReportsBake, InSteps, Operator):
    """Bake the rig's targets or markers to keyframes"""

    bl_idname = "fabrik.bake"
    bl_label = "Bake to Keyframes"
    why_not = staticmethod(why_no_bake)
    doing = "baking"

    def steps(self, context: Context) -> "Steps":
        """Start the bake with the rig's settings and the given keywords."""
        from ...bake.bake import bake_steps
        from ...bake.jobs import BakeSettings, chosen_range

        rig = rig_at_hand(context)
        settings = rig_settings(rig)
        options: dict[str, Any] = {
            name: getattr(settings.bake if hasattr(settings.bake, name) else settings.capture, name) for name in OPTIONS
        } | self.given(*OPTIONS)
        first, last = chosen_range(context.scene, rig, options["source"])
        frames = {"frame_start": first, "frame_end": last} | self.given("frame_start", "frame_end")
        return bake_steps(context, rig, BakeSettings(**frames, action_name=self.action_name, **options))


class FABRIK_OT_match_bones(OnRig, Operator):
    """Map the source's bones to the rig's bones by name"""

    bl_idname = "fabrik.match_bones"
    bl_label = "Map Bones"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...retarget.retarget import match_bones

        return f"{len(match_bones(context, rig))} bones mapped", []


class FABRIK_OT_save_bone_map(OnJson, Operator, ExportHelper):
    """Save the bone mapping to a JSON file"""

    bl_idname = "fabrik.save_bone_map"
    bl_label = "Save Bone Map"
    bl_options = {"REGISTER"}

    def run(self, _context: Context, rig: bpy.types.Object) -> Done:
        from ...retarget.retarget import save_pairs

        return f"{save_pairs(rig, chosen_path(self))} bones saved to {chosen_path(self).name}", []


class FABRIK_OT_load_bone_map(OnJson, Operator, ImportHelper):
    """Load the bone mapping from a JSON file"""

    bl_idname = "fabrik.load_bone_map"
    bl_label = "Load Bone Map"

    def run(self, _context: Context, rig: bpy.types.Object) -> Done:
        from ...retarget.retarget import load_pairs

        return f"{load_pairs(rig, chosen_path(self))} bones loaded", []


@takes(RETARGET_OPTIONS)
class FABRIK_OT_retarget(ReportsBake, InSteps, Operator):
    """Copy another armature's motion to the rig as keyframes"""

    bl_idname = "fabrik.retarget"
    bl_label = "Retarget Animation"
    doing = "retargeting"

    source: StringProperty(
        name="Source",
        description="The armature to retarget from, or a .bvh, .fbx, .glb, .usd, .npz or .mvnx file. "
        "Defaults to the rig's source",
        options=ASIDE,
    )

    def steps(self, context: Context) -> "Steps":
        """Start the retargeting with the rig's settings and the given keywords."""
        from ...bake.jobs import preview_range
        from ...retarget.door import retarget_from
        from ...retarget.retarget import pairs_of

        rig = rig_at_hand(context)
        settings = rig_settings(rig)
        how: dict[str, Any] = {name: getattr(settings.retarget, name) for name in RETARGET_OPTIONS}
        how |= self.given(*RETARGET_OPTIONS)
        bake: dict[str, Any] = {name: getattr(settings.bake, name) for name in KEY_OPTIONS} | self.given(*KEY_OPTIONS)
        given = self.given("frame_start", "frame_end")
        first, last = preview_range(context.scene) or (None, None)
        frames = given.get("frame_start", first), given.get("frame_end", last)
        source = bpy.data.objects.get(self.source) or self.source or settings.retarget.source
        # The list of bone pairs is only valid for the rig's own source.
        pairs = pairs_of(rig) if source == settings.retarget.source else ()
        return retarget_from(context, rig, source, frames, how, {**bake, "action_name": self.action_name}, pairs)


# The default length of a hold in frames.
_LENGTH = 20


@of_a_rig
def _why_no_hold(rig: bpy.types.Object) -> str:
    """Why an object has no hold, and what to do; "" if it has one."""
    return "" if len(rig_settings(rig).holds) else f"{rig.name!r} has no hold: add one first"


class FABRIK_OT_add_hold(OnRig, Operator):
    """Keep a hand or foot in place over a range of frames by changing keys within the joint limits"""

    bl_idname = "fabrik.add_hold"
    bl_label = "Add Hold"

    bone: StringProperty(
        name="Bone", description="The bone to hold. Defaults to the active bone", options={"SKIP_SAVE"}
    )
    point: EnumProperty(name="Point", description="The end of the bone that is held", items=POINTS[:2])
    hold_rotation: BoolProperty(name="Hold Rotation", description="Hold the rotation as well", default=True)
    first: IntProperty(name="First", description="First frame of the hold. Defaults to the current frame")
    last: IntProperty(name="Last", description="Last frame of the hold")
    ease: IntProperty(name="Ease", description="Frames to ease in and out of the hold", default=10, min=0)
    target: StringProperty(name="Object", description="The object that the bone stays with. Defaults to world space")
    target_bone: StringProperty(name="Object's Bone", description="If the object is an armature, the bone to stay with")

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Show a dialog for the frames; by default the hold starts at the current frame."""
        given = self.given("first", "last")
        self.first = given.get("first", context.scene.frame_current)
        self.last = given.get("last", self.first + _LENGTH)
        asked: Any = context.window_manager.invoke_props_dialog(self)
        return asked

    def draw(self, context: Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        for name in ("first", "last", "ease"):
            layout.prop(self, name)
        layout.prop_search(self, "target", context.scene, "objects")
        # If two objects have the same name, `bpy.data` prefers the local one, like `run`. Scenes do not.
        target: bpy.types.Object | None = bpy.data.objects.get(self.target)
        if target is not None and target.type == "ARMATURE":
            layout.prop_search(self, "target_bone", target.data, "bones")
        advanced = folded(layout, "Advanced", "hold")
        if advanced is not None:
            advanced.prop(self, "point")
            advanced.prop(self, "hold_rotation")

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...edit.holds import HoldSettings, add_hold
        from ...settings.selection import clicked_bone

        bone = self.bone or clicked_bone(rig).name
        target = named(bpy.data.objects, self.target, "object")
        settings = HoldSettings(self.point, self.hold_rotation, self.ease, target, self.target_bone)
        missed = add_hold(context, rig, bone, (self.first, self.last), settings)
        return f"{bone!r} is now held from frame {self.first} to {self.last}", [missed] if missed else []


class FABRIK_OT_remove_hold(OnRig, Operator):
    """Restore the keys that the hold replaced. Keys changed since then are kept"""

    bl_idname = "fabrik.remove_hold"
    bl_label = "Remove Hold"
    why_not = staticmethod(_why_no_hold)

    index: IntProperty(name="Number", description="Index of the hold, starting at 0", min=0)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...edit.holds import remove_hold

        name, left = remove_hold(context, rig, self.index)
        return f"Removed hold {name!r}", [left] if left else []


class FABRIK_OT_hold_contacts(OnRig, Operator):
    """Hold the feet while they are in contact with the floor. Replaces holds that this operator added before"""

    bl_idname = "fabrik.hold_contacts"
    bl_label = "Hold Planted Feet"

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Ask for confirmation before keys are changed."""
        title, message = ui_text("Hold Planted Feet?"), ui_text("This changes keys of the legs")
        asked = context.window_manager.invoke_confirm
        return set(asked(self, event, title=title, message=message, confirm_text=ui_text("Apply")))

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...edit.holds import hold_feet

        warnings = hold_feet(context, rig)
        return f"Holds added: {len(warnings)}", list(filter(None, warnings))


def has_to_be_played(rig: bpy.types.Object) -> bool:
    """Whether strips or controls move a rig, so that curves alone don't give its bones' positions."""
    animation = rig.animation_data
    return animation is not None and (animation.action is None or control_rig(rig) is not None)


def play_again(context: Context, spread: int) -> None:
    """Update trails after a drag that changed other frames, if Blender must play the frames for them."""
    rig = shown_motion(context) if spread else None
    if rig is not None and has_to_be_played(rig):
        from ..overlays.motion import update_trails

        update_trails(context, rig)


@of_a_rig
def _why_no_trails(rig: bpy.types.Object) -> str:
    """Why an object's trails can't be updated, and what to do; "" if they can."""
    return "" if seen(rig).show_trails else f"No trails of {rig.name!r} are shown: turn on Trails first"


class FABRIK_OT_work_out_trails(OnRig, Operator):
    """Recalculate trails of control rigs and NLA strips by playing the frames"""

    bl_idname = "fabrik.work_out_trails"
    bl_label = "Update Trails"
    why_not = staticmethod(_why_no_trails)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...rig.armature import RigError
        from ..overlays.motion import update_trails

        if not update_trails(context, rig):
            raise RigError(f"{rig.name!r} has no keys, so nothing moves: bake or key a motion first")
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
