"""Values of the add-on's preferences; their defaults if the add-on is used from a checkout."""

from typing import Any, Final, TypeAlias

import bpy

from ...package import PACKAGE

Rgba: TypeAlias = tuple[float, float, float, float]

# The colors of goals are from Okabe and Ito's palette, which people with red-green color blindness can tell apart.
COLORS: Final[dict[str, Rgba]] = {
    "met": (0.34, 0.71, 0.91, 1.0),
    "missed": (0.95, 0.40, 0.0, 1.0),
    "pinned": (0.94, 0.89, 0.26, 1.0),
    "bend": (0.80, 0.47, 0.65, 1.0),
    "free": (0.30, 0.66, 1.0, 1.0),
    "binds": (1.0, 0.25, 0.10, 1.0),
}


def preferences() -> Any:
    """The add-on's preferences; None if it was not enabled as an add-on."""
    addon: Any = bpy.context.preferences.addons.get(PACKAGE)
    return None if addon is None else addon.preferences


def color(name: str) -> Rgba:
    """A color of the overlays: red, green, blue and alpha from 0 to 1."""
    chosen = preferences()
    if chosen is None:
        return COLORS[name]
    red, green, blue, alpha = getattr(chosen, name)
    return red, green, blue, alpha
