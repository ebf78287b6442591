"""Mapping markers to bones: by their labels, by hand, or from a file."""

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty
from bpy.types import Context, Operator
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ....markers.mapping.marker_sets import PRESETS
from ...settings.rig import rig_settings
from ...settings.why_not import named, of_a_rig, why_no_mapped
from .base import Done, OnJson, OnRig, chosen_path

_PRESETS = (
    ("AUTO", "Automatic", "Use the marker set that fits the labels best"),
    *((key, preset.title, preset.description) for key, preset in PRESETS.items()),
)
# At most this many labels without a bone are named, and the others counted.
_NAMED = 6


class FABRIK_OT_match_markers(OnRig, Operator):
    """List the scene's markers on the rig, and choose the bone of each marker from its label"""

    bl_idname = "fabrik.match_markers"
    bl_label = "Match Markers to Bones"

    preset: EnumProperty(name="Marker Set", description="The marker set that the labels belong to", items=_PRESETS)
    take: StringProperty(
        name="Take",
        description="Collection of the markers. Defaults to the collection imported last, then the rig's "
        "collection, then the selected empties",
        search=lambda _self, _context, _typed: [collection.name for collection in bpy.data.collections],
    )
    armature: StringProperty(
        name="Marker Armature",
        description="Armature whose bones are the markers, if an importer created bones instead of empties",
        search=lambda _self, context, _typed: [
            thing.name for thing in context.scene.objects if thing.type == "ARMATURE"
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
        from ...capture.guessing import guess_markers
        from ...capture.matching import match_markers, matching_doubts_of, of_take
        from ...capture.takes import take_name

        take = named(bpy.data.collections, self.take, "collection")
        armature = named(context.scene.objects, self.armature, "object")
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
    """Use another take in the panels below. What the rig has of this take is kept"""

    bl_idname = "fabrik.follow_take"
    bl_label = "Choose Take"

    take: StringProperty(name="Take", description="Collection of the take's markers", options={"SKIP_SAVE"})

    def run(self, _context: Context, rig: bpy.types.Object) -> Done:
        from ...capture.takes import follow_take

        follow_take(rig, named(bpy.data.collections, self.take, "collection"))
        return f"{rig.name!r} now follows {self.take!r}", []


def _listed(labels: tuple[str, ...]) -> str:
    if not labels:
        return ""
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return f"; without a bone: {', '.join(labels[:_NAMED])}{more}"


@of_a_rig
def _why_no_marker(rig: bpy.types.Object) -> str:
    """Why a listed marker cannot be assigned to the active bone, and what to do; "" if it can."""
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


CLASSES = (
    FABRIK_OT_match_markers,
    FABRIK_OT_follow_take,
    FABRIK_OT_marker_bone,
    FABRIK_OT_save_marker_map,
    FABRIK_OT_load_marker_map,
)
