"""The 3D viewport of a drag: converts mouse positions to lines of sight, and positions to pixels."""

from typing import Any

import bpy
import numpy as np
from bpy_extras import view3d_utils

from ....core.arrays import FloatArray
from .mouse import Ray


class DragView:
    """The main region of a viewport, even if the drag was started in another region. Positions are in pixels."""

    def __init__(self, context: bpy.types.Context) -> None:
        space: Any = context.space_data
        in_view = context.region.type == "WINDOW"
        regions = [region for region in context.area.regions if region.type == "WINDOW"]
        self._region: Any = context.region if in_view else regions[0]
        self._view: Any = context.region_data if in_view else space.region_3d

    def mouse(self, event: bpy.types.Event) -> FloatArray:
        """(2,) the mouse's position."""
        return self._inside(event.mouse_x, event.mouse_y)

    def press(self, event: bpy.types.Event) -> FloatArray:
        """(2,) the mouse's position when the button was pressed."""
        return self._inside(event.mouse_prev_press_x, event.mouse_prev_press_y)

    def ray(self, mouse: FloatArray) -> Ray:
        """The line of sight through a pixel (2,)."""
        view = (self._region, self._view, mouse.tolist())
        return Ray(
            np.array(view3d_utils.region_2d_to_origin_3d(*view), dtype=np.float64),
            np.array(view3d_utils.region_2d_to_vector_3d(*view), dtype=np.float64),
        )

    def on_screen(self, place: FloatArray) -> FloatArray | None:
        """(2,) the pixel of a point (3,) in world space; None if it is behind the viewer."""
        found = view3d_utils.location_3d_to_region_2d(self._region, self._view, place.tolist())
        return None if found is None else np.array(found, dtype=np.float64)

    def pixel(self, place: FloatArray, mouse: FloatArray) -> float:
        """Meters per pixel at the depth of a point (3,)."""
        rays = self.ray(mouse), self.ray(mouse + np.array((1.0, 0.0)))
        depth = float((place - rays[0].origin) @ rays[0].direction)
        seen = [ray.origin + depth * ray.direction for ray in rays]
        return float(np.linalg.norm(seen[1] - seen[0]))

    def _inside(self, x: float, y: float) -> FloatArray:
        """(2,) a position in the window converted to the region."""
        return np.array((x - self._region.x, y - self._region.y), dtype=np.float64)


def has_view(context: bpy.types.Context) -> bool:
    """Whether there is a 3D viewport in the context."""
    return context.area is not None and context.area.type == "VIEW_3D" and context.region is not None
