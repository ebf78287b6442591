"""Which markers are on which bones: matched by their labels, by hand, or from a file."""

from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty
from bpy.types import Context, Operator
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ....markers.mapping.marker_sets import PRESETS
from ...settings.rig import rig_settings
from ...settings.why_not import why_no_mapped, why_no_rig
from .asking import can_run, says_why_not

_PRESETS = (
    ("AUTO", "By Labels", "The set of labels that fits the markers best"),
    *((key, preset.title, preset.description) for key, preset in PRESETS.items()),
)
# So many labels without a bone are named, and the others counted.
_NAMED = 6


class OnRig:
    """An operator on the active armature."""

    @classmethod
    def poll(cls, context: Context) -> bool:
        return can_run(cls, why_no_rig(context.object))


class FABRIK_OT_match_markers(OnRig, Operator):
    """List the scene's markers on the rig, each with the bone that its label stands for"""

    bl_idname = "fabrik.match_markers"
    bl_label = "Match Markers"
    bl_options = {"REGISTER", "UNDO"}

    preset: EnumProperty(name="Labels", description="The set of labels that the markers have", items=_PRESETS)
    take: StringProperty(
        name="Take",
        description="Collection of the markers; without one the rig's own, else the one imported last, "
        "else the selected empties",
        search=lambda _self, _context, _typed: [collection.name for collection in bpy.data.collections],
    )
    armature: StringProperty(
        name="Marker Armature",
        description="Armature whose bones are the markers, as other importers make them",
        search=lambda _self, context, _typed: [
            thing.name for thing in context.scene.objects if thing.type == "ARMATURE"
        ],
    )
    keep: BoolProperty(name="Keep", description="Leave markers that are on a bone already as they are")

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Match."""
        from ...capture.matching import match_markers

        take = _named(bpy.data.collections, self.take, "collection")
        armature = _named(context.scene.objects, self.armature, "object")
        found = match_markers(
            context, context.object, preset=self.preset, take=take, take_armature=armature, keep=self.keep
        )
        labels = PRESETS[found.preset].title if found.preset else "no known labels"
        self.report({"INFO"}, f"{len(found.markers)} markers on bones ({labels}){_listed(found.unmatched)}")
        return {"FINISHED"}


def _named(things: Any, name: str, kind: str) -> Any:
    """The thing of a name, None without one; raises FabrikError where it is not there."""
    from ....core.errors import FabrikError

    if name and name not in things:
        raise FabrikError(f"There is no {kind} {name!r}.")
    return things[name] if name else None


def _listed(labels: tuple[str, ...]) -> str:
    if not labels:
        return ""
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return f"; without a bone: {', '.join(labels[:_NAMED])}{more}"


class FABRIK_OT_marker_bone(OnRig, Operator):
    """Put the marker chosen in the list on the active bone"""

    bl_idname = "fabrik.marker_bone"
    bl_label = "Marker on Active Bone"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: Context) -> bool:
        """With a marker and an active bone."""
        reason = why_no_rig(context.object)
        if not reason and not len(rig_settings(context.object).capture.markers):
            reason = "There is no marker in the list: match the markers first"
        if not reason and context.object.data.bones.active is None:
            reason = "Pick a bone in Pose mode"
        return can_run(cls, reason)

    def execute(self, context: Context) -> set[str]:
        """Take the active bone over."""
        capture = rig_settings(context.object).capture
        place = min(max(capture.active_marker, 0), len(capture.markers) - 1)
        marker = capture.markers[place]
        marker.bone, marker.enabled = context.object.data.bones.active.name, True
        return {"FINISHED"}


class FABRIK_OT_save_marker_map(OnRig, Operator, ExportHelper):
    """Save which marker is on which bone as a JSON file"""

    bl_idname = "fabrik.save_marker_map"
    bl_label = "Save Marker Map"

    filename_ext = ".json"
    filter_glob: StringProperty(default="*.json", options={"HIDDEN"})

    @classmethod
    def poll(cls, context: Context) -> bool:
        """With markers on bones."""
        return can_run(cls, why_no_mapped(context.object))

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Write the file."""
        from ...capture.matching import save_map

        count = save_map(context.object, _path(self))
        self.report({"INFO"}, f"{count} markers saved to {_path(self).name}")
        return {"FINISHED"}


class FABRIK_OT_load_marker_map(OnRig, Operator, ImportHelper):
    """Put the listed markers on the bones that a JSON file says"""

    bl_idname = "fabrik.load_marker_map"
    bl_label = "Load Marker Map"
    bl_options = {"REGISTER", "UNDO"}

    filename_ext = ".json"
    filter_glob: StringProperty(default="*.json", options={"HIDDEN"})

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Read the file."""
        from ...capture.matching import load_map

        found, count = load_map(context.object, _path(self))
        self.report({"INFO"}, f"{found} of the map's {count} markers are in the list, and on its bones now")
        return {"FINISHED"}


def _path(chosen: Any) -> Path:
    return Path(bpy.path.abspath(chosen.filepath))


CLASSES = (FABRIK_OT_match_markers, FABRIK_OT_marker_bone, FABRIK_OT_save_marker_map, FABRIK_OT_load_marker_map)
