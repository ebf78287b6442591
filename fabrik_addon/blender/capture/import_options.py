"""Options for reading marker files, declared once for the import operator and the command line."""

from inspect import get_annotations
from typing import Any, Final

from bpy.props import EnumProperty, IntProperty

from ...markers.files.suffixes import LAYOUTS

_UNITS = (
    ("AUTO", "From File", "Use the units given in the file"),
    ("mm", "Millimeters", "Read positions as millimeters, regardless of the file's units"),
    ("cm", "Centimeters", "Read positions as centimeters, regardless of the file's units"),
    ("m", "Meters", "Read positions as meters, regardless of the file's units"),
    ("in", "Inches", "Read positions as inches, regardless of the file's units"),
    ("ft", "Feet", "Read positions as feet, regardless of the file's units"),
)
_UP_AXES = (
    ("AUTO", "From File", "Use the axis given in the file, or detect it from the markers"),
    ("Y", "Y", "The file's Y axis points up"),
    ("Z", "Z", "The file's Z axis points up"),
)
_LAYOUTS = (
    ("AUTO", "Automatic", "Detect the layout from the names in the file, or from the number of points and the limbs"),
    *((key, title, "Read unnamed points in this order") for key, title in LAYOUTS.items()),
)


class ImportOptions:
    """Options of an import; a mixin for the operator."""

    units: EnumProperty(name="Units", description="Units of the positions in the file", items=_UNITS)
    up_axis: EnumProperty(name="Up Axis", description="Which axis of the file points up", items=_UP_AXES)
    keypoints: EnumProperty(
        name="Layout", description="Order of keypoints that are not named in the file", items=_LAYOUTS
    )
    start_frame: IntProperty(name="Start Frame", description="Scene frame of the first sample", default=1)


IMPORT_OPTIONS: Final[dict[str, Any]] = get_annotations(ImportOptions)
