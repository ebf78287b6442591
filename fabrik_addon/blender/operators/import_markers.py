"""File > Import > Motion-capture markers."""

from pathlib import Path

import bpy
from bpy.props import CollectionProperty, EnumProperty, FloatProperty, IntProperty, StringProperty
from bpy.types import Context, Menu, Operator, OperatorFileListElement
from bpy_extras.io_utils import ImportHelper

from ...core.errors import FabrikError
from ...markers.clip import Clip
from ...markers.trc import read_trc
from ..import_markers import ImportMarkersError, import_clip

_UNITS = (
    ("AUTO", "From File", "The units that the file states"),
    ("mm", "Millimetres", "Positions are in millimetres, whatever the file states"),
    ("cm", "Centimetres", "Positions are in centimetres, whatever the file states"),
    ("m", "Metres", "Positions are in metres, whatever the file states"),
)
_UP_AXES = (
    ("AUTO", "Guess", "The axis along which the markers stand on the floor"),
    ("Y", "Y", "The file's Y axis points up"),
    ("Z", "Z", "The file's Z axis points up"),
)
_TIMINGS = (
    ("SET_SCENE_RATE", "Set Scene's Rate", "The scene takes on the recording's frame rate, one sample a frame"),
    ("KEEP_TIME", "Keep Time", "The scene keeps its frame rate; samples stay at their time, also between frames"),
    ("KEEP_FRAMES", "Keep Frames", "The scene keeps its frame rate; one sample a frame, so the speed may change"),
)


class FABRIK_OT_import_markers(Operator, ImportHelper):
    """Import motion-capture markers as animated empties, one for each marker"""

    bl_idname = "fabrik.import_markers"
    bl_label = "Import Markers"
    bl_options = {"REGISTER", "UNDO", "PRESET"}

    filename_ext = ".trc"
    filter_glob: StringProperty(default="*.trc", options={"HIDDEN"})
    files: CollectionProperty(type=OperatorFileListElement, options={"HIDDEN", "SKIP_SAVE"})
    directory: StringProperty(subtype="DIR_PATH", options={"HIDDEN", "SKIP_SAVE"})
    units: EnumProperty(name="Units", description="Units of the positions in the file", items=_UNITS)
    up_axis: EnumProperty(name="Up Axis", description="Which axis of the file points up", items=_UP_AXES)
    timing: EnumProperty(name="Timing", description="How the recording's frame rate meets the scene's", items=_TIMINGS)
    start_frame: IntProperty(name="Start Frame", description="Frame of the first sample", default=1)
    scale: FloatProperty(
        name="Scale", description="Factor on all positions", default=1.0, min=1e-6, soft_min=0.01, soft_max=100.0
    )

    def execute(self, context: Context) -> set[str]:
        """Read every file, then import them: a file that can't be read leaves the scene as it was."""
        try:
            clips = [self._read(path) for path in self._paths()]
            _check_rates(clips, self.timing)
            for clip in clips:
                import_clip(context, clip, timing=self.timing, start_frame=self.start_frame, scale=self.scale)
        except FabrikError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        for clip in clips:
            self.report({"INFO"}, _summary(clip))
        return {"FINISHED"}

    def _paths(self) -> list[Path]:
        """The files chosen in the browser, or the one that a script named."""
        names = [file.name for file in self.files if file.name]
        if names:
            return [Path(bpy.path.abspath(self.directory)) / name for name in names]
        single: str = self.filepath  # type: ignore[attr-defined]  # a property of ImportHelper
        return [Path(bpy.path.abspath(single))]

    def _read(self, path: Path) -> Clip:
        units = None if self.units == "AUTO" else self.units
        up_axis = None if self.up_axis == "AUTO" else self.up_axis
        return read_trc(path, units=units, up_axis=up_axis)


def _check_rates(clips: list[Clip], timing: str) -> None:
    """Raise ImportMarkersError where a scene would have to take on two rates."""
    rates = sorted({clip.rate for clip in clips})
    if timing == "SET_SCENE_RATE" and len(rates) > 1:
        raise ImportMarkersError(
            f"The files have different frame rates ({rates[0]:g} to {rates[-1]:g} a second): choose Keep Time instead."
        )


def _summary(clip: Clip) -> str:
    return (
        f"{clip.source}: {len(clip.names)} markers, {clip.frame_count} frames, {clip.rate:g} a second, "
        f"{clip.units}, {clip.up_axis} up"
    )


def menu_entry(self: Menu, _context: Context) -> None:
    """The line in File > Import."""
    self.layout.operator(FABRIK_OT_import_markers.bl_idname, text="Motion-capture markers (.trc)")


CLASSES = (FABRIK_OT_import_markers,)
