"""Converts mouse and keys during a drag to a translation and a rotation in world space."""

from dataclasses import dataclass, field
from math import atan2, degrees, floor, log10, pi, radians, tau
from typing import Any, Final

import bpy
import numpy as np
from bpy.types import Context
from bpy_extras import view3d_utils

from ...core.arrays import FloatArray
from ...core.rotations import product, quaternion_from_rotation_vector, rotation_vector_from_quaternion

_AXES: Final = "XYZ"
# Sine of an angle. A line of sight at a smaller angle to a plane or an axis gives no position on it.
_FLAT: Final = 0.05
# Pixels. A snapping step in meters is the largest power of ten that is at most this wide on the screen.
_SNAP_WIDTH: Final = 100.0
_SNAP_ANGLE, _FINE_ANGLE = radians(5.0), radians(1.0)
_FINE: Final = 0.1


@dataclass(frozen=True)
class Ray:
    """A line of sight in world space: a point on it (3,), and its unit direction (3,) away from the viewer."""

    origin: FloatArray
    direction: FloatArray


@dataclass
class Lock:
    """The axes to which a drag is locked.

    Attributes:
        axis: "X", "Y", "Z", or "" for none.
        is_plane: whether the drag stays in the plane perpendicular to the axis, instead of on the axis.
        is_local: whether the axis is the bone's instead of the world's.
    """

    axis: str = ""
    is_plane: bool = False
    is_local: bool = False

    def press(self, axis: str, *, plane: bool) -> "Lock":
        """The lock after a key press: first the world's axis; after the same key again the bone's axis, then none."""
        if (axis, plane) != (self.axis, self.is_plane):
            return Lock(axis, plane)
        return Lock() if self.is_local else Lock(axis, plane, is_local=True)

    @property
    def fields(self) -> list[int]:
        """The indices, 0 to 2, of the axes along which a drag may move."""
        if not self.axis:
            return [0, 1, 2]
        number = _AXES.index(self.axis)
        return [each for each in (0, 1, 2) if (each == number) != self.is_plane]

    def __str__(self) -> str:
        if not self.axis:
            return ""
        space = "local" if self.is_local else "global"
        return f"locking {space} {self.axis}" if self.is_plane else f"along {space} {self.axis}"


@dataclass
class Typing:
    """Numbers typed during a drag, one for each free axis; Tab goes to the next."""

    texts: dict[int, str] = field(default_factory=dict)
    place: int = 0

    def type(self, character: str) -> None:
        """Append a digit or a point; a minus changes the sign."""
        text = self.texts.get(self.place, "")
        if character == "-":
            self.texts[self.place] = text[1:] if text.startswith("-") else f"-{text}"
        elif character.isdecimal() or (character == "." and "." not in text):
            self.texts[self.place] = text + character

    def erase(self) -> None:
        """Remove the last character; the mouse is used again when none is left."""
        text = self.texts.pop(self.place, "")[:-1]
        if text:
            self.texts[self.place] = text

    def next(self, count: int) -> None:
        """Continue with the next of `count` numbers."""
        self.place = (self.place + 1) % count

    def values(self, count: int) -> list[float] | None:
        """The numbers for `count` axes, zero if not typed; None if nothing is typed at all."""
        if not self.texts:
            return None
        texts = [self.texts.get(place, "") for place in range(count)]
        # A text without digits is incomplete.
        return [float(text) if text.strip("-.") else 0.0 for text in texts]


@dataclass
class DragInput:
    """All input since a drag began.

    Attributes:
        place: (3,) the dragged point at the start, in world space.
        axes: (3, 3) the bone's axes at the start as columns, in world space.
        first, ray: the lines of sight at the start and now.
        angle: radians that the mouse has moved around the point, counterclockwise on the screen.
        pixel: meters per pixel at the point.
        rotating: whether the mouse rotates the bone instead of moving it.
        base_shift, base_turn: translation and rotation when the user last switched between moving and rotating.
        snap, fine: whether to move in steps, and in small steps.
        is_drawn: whether the last step has been drawn.
    """

    place: FloatArray
    axes: FloatArray
    first: Ray
    ray: Ray
    pixel: float
    angle: float = 0.0
    rotating: bool = False
    base_shift: FloatArray = field(default_factory=lambda: np.zeros(3))
    base_turn: FloatArray | None = None
    snap: bool = False
    fine: bool = False
    is_drawn: bool = True
    lock: Lock = field(default_factory=Lock)
    typing: Typing = field(default_factory=Typing)

    def press_axis(self, axis: str, *, plane: bool) -> None:
        """Handle X, Y or Z."""
        self.lock = self.lock.press(axis, plane=plane)
        self.typing = Typing()

    def rotate(self, rotating: bool) -> None:
        """Handle R or G: keep the input so far, and continue with the mouse from there."""
        self.base_shift, self.base_turn = self.shift(), self.turn()
        self.rotating, self.angle, self.first = rotating, 0.0, self.ray
        self.lock, self.typing = Lock(), Typing()

    @property
    def frame(self) -> FloatArray:
        """(3, 3) the axes of the lock, as columns."""
        return self.axes if self.lock.is_local else np.eye(3)

    @property
    def field_count(self) -> int:
        """The largest number of values that can be typed."""
        return 1 if self.rotating else len(self.lock.fields)

    def shift(self) -> FloatArray:
        """(3,) translation of the dragged point in world space."""
        if self.rotating:
            return self.base_shift
        open_axes = self.lock.fields
        own = np.zeros(3)
        typed = self.typing.values(len(open_axes))
        if typed is not None:
            own[open_axes] = typed
        else:
            own[open_axes] = (self.frame.T @ (self._under(self.ray) - self._under(self.first)))[open_axes]
            if self.snap:
                step = snap_step(self.pixel, fine=self.fine)
                own = np.round(own / step) * step
        return np.asarray(self.base_shift + self.frame @ own)

    @property
    def depth(self) -> FloatArray | None:
        """(3,) the line of sight, along which the mouse does not move the point.

        None if keys determine this direction.
        """
        is_locked = self.rotating or self.lock.axis or self.typing.texts or self.base_shift.any()
        return None if is_locked else self.first.direction

    def turn(self) -> FloatArray | None:
        """(3,) rotation vector of the bone, in radians and world space; None if it rotates freely."""
        if not self.rotating:
            return self.base_turn
        axis = self.frame[:, _AXES.index(self.lock.axis)] if self.lock.axis else -self.first.direction
        # The sign of the rotation when the mouse moves counterclockwise.
        sign = 1.0 if axis @ self.first.direction <= 0.0 else -1.0
        typed = self.typing.values(1)
        angle = sign * self.angle if typed is None else radians(typed[0])
        if self.snap and typed is None:
            step = _FINE_ANGLE if self.fine else _SNAP_ANGLE
            angle = round(angle / step) * step
        return axis * angle if self.base_turn is None else turned_on(self.base_turn, axis * angle)

    def add_turn(self, before: FloatArray, after: FloatArray, share: float = 1.0) -> None:
        """Handle mouse movement from `before` (2,) to `after` (2,), in pixels relative to the dragged point."""
        change = atan2(after[1], after[0]) - atan2(before[1], before[0])
        self.angle += share * ((change + pi) % (tau) - pi)

    def _under(self, ray: Ray) -> FloatArray:
        """(3,) the position in world space under the mouse."""
        if self.lock.axis:
            axis = self.frame[:, _AXES.index(self.lock.axis)]
            found = on_plane(ray, self.place, axis) if self.lock.is_plane else on_axis(ray, self.place, axis)
            if found is not None:
                return found
        straight = on_plane(ray, self.place, self.first.direction)
        return self.place if straight is None else straight

    def __str__(self) -> str:
        """The state of the drag, for the viewport's header."""
        typed = self.typing.texts.get(self.typing.place)
        turn = self.turn()
        if self.rotating and turn is not None:
            amount = f"Rotate {degrees(float(np.linalg.norm(turn))):.1f}°"
        else:
            # Adding zero removes the sign of a rounded zero.
            own = np.round(self.frame.T @ self.shift(), 4) + 0.0
            parts = [f"{_AXES[each]} {own[each]:.4f}" for each in self.lock.fields]
            amount = f"Move {'  '.join(parts)}  ({np.linalg.norm(own):.4f} m)"
        marks = [str(self.lock), f"[{typed}]" if typed is not None else ""]
        return ", ".join(filter(None, [amount, *marks]))


def turned_on(first: FloatArray, second: FloatArray) -> FloatArray:
    """(3,) the rotation vector of two successive rotations, given as rotation vectors (3,)."""
    quaternions = (quaternion_from_rotation_vector(each) for each in (second, first))
    return rotation_vector_from_quaternion(product(*quaternions))


def on_plane(ray: Ray, place: FloatArray, normal: FloatArray) -> FloatArray | None:
    """(3,) intersection of a line of sight with a plane: a point (3,) and a normal (3,); None if nearly parallel."""
    slope = float(ray.direction @ normal)
    if abs(slope) < _FLAT:
        return None
    return np.asarray(ray.origin + ray.direction * (float((place - ray.origin) @ normal) / slope))


def on_axis(ray: Ray, place: FloatArray, axis: FloatArray) -> FloatArray | None:
    """(3,) the point on an axis (3,) through a point (3,) nearest to a line of sight; None if they are parallel."""
    across = np.cross(axis, ray.direction)
    square = float(across @ across)
    if square < _FLAT**2:
        return None
    return np.asarray(place + axis * (float(np.cross(ray.origin - place, ray.direction) @ across) / square))


def snap_step(pixel: float, *, fine: bool) -> float:
    """Meters of one snapping step: a power of ten that is easy to see at `pixel` meters per pixel."""
    step = 10.0 ** floor(log10(max(pixel, 1e-9) * _SNAP_WIDTH))
    return step * _FINE if fine else step


class DragView:
    """The main region of a viewport, even if the drag was started in another region. Positions are in pixels."""

    def __init__(self, context: Context) -> None:
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
        origin, direction = view3d_utils.region_2d_to_origin_3d(*view), view3d_utils.region_2d_to_vector_3d(*view)
        return Ray(np.array(origin, dtype=np.float64), np.array(direction, dtype=np.float64))

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
