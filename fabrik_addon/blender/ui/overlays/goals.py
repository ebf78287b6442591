"""Draws targets, pins, pole targets, support areas, the distances of missed goals, and errors of markers."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeAlias

import bpy
import numpy as np
from bpy.types import Context, Object, PoseBone, Scene
from mathutils import Vector

from ....core.arrays import TINY, FloatArray, IntArray
from ....core.errors import FabrikError
from ....core.kernel.bodies import cross as cross_product
from ...goals.body import center_of_mass, fitted, support_of
from ...goals.places import is_seen
from ...posing.live import is_paused, why_short
from ...rig.armature import armature_point, check_rig, length_text, meters_per_unit
from ...settings.motion import BAD, FAIR
from ...settings.rig import rig_settings
from ...settings.why_not import enabled_effectors, mapped_markers
from ..translations import ui_message, ui_text
from .drawing import COLORS, Part, along

# The size of a dot relative to a mark.
_DOT: Final = 0.35
_DASHES: Final = 12
# The number of lines in a circle.
_AROUND: Final = 24
# Cosines and sines around a ring, (_AROUND, 1) each, and the edges of a capsule's four closed lines.
_ANGLES = np.linspace(0.0, 2.0 * np.pi, _AROUND, endpoint=False)[:, None]
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
_STARTS = np.arange(4 * _AROUND).reshape(-1, _AROUND)
_CAPSULE_EDGES = np.stack([_STARTS, np.roll(_STARTS, -1, axis=1)], axis=-1).reshape(-1, 2)

# The wireframes that mark positions: corners, and the ends of lines as their indices. A cube has all eight corners.
_CUBE = np.array(list(product((-1.0, 1.0), repeat=3)))
_DIAMOND = (
    np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]),
    np.array([(0, 2), (2, 1), (1, 3), (3, 0), (0, 4), (4, 1), (1, 5), (5, 0), (2, 4), (4, 3), (3, 5), (5, 2)]),
)
_BOX = (
    0.7 * _CUBE,
    np.array([(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (1, 3), (4, 6), (5, 7), (0, 4), (1, 5), (2, 6), (3, 7)]),
)
_PYRAMID = (
    np.array([(0, 0, 1), (0.9, 0, -0.6), (-0.45, 0.8, -0.6), (-0.45, -0.8, -0.6)]),
    np.array([(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1)]),
)
_CROSS = 0.6 * _CUBE, np.array([(0, 7), (1, 6), (2, 5), (3, 4)])


# The widths of lines in pixels: the usual one, and that for missed goals.
_WIDTH: Final = 1.25
_MISSED_WIDTH: Final = 2.5


def _lines(look: str, points: FloatArray, ends: IntArray) -> Part:
    """Lines with the look of a key of `COLORS`; those of missed goals are thicker."""
    return Part(_MISSED_WIDTH if look == "missed" else _WIDTH, points, ends, COLORS[look])


def dashed(look: str, start: FloatArray, end: FloatArray) -> Part:
    """A dashed line from one position (3,) to another."""
    shares = np.linspace(0.0, 1.0, 2 * _DASHES)[:, None]
    return _lines(look, start + shares * (end - start), np.arange(2 * _DASHES).reshape(-1, 2))


def capsule(ends: FloatArray, aside: FloatArray, radius: float) -> Part:
    """A capsule: rings at the ends (2, 3) of its axis, and two outlines; aside: (3,) not parallel to the axis."""
    along = ends[1] - ends[0]
    along = along / max(float(np.linalg.norm(along)), TINY)
    first = aside - (aside @ along) * along
    first /= max(float(np.linalg.norm(first)), TINY)
    second = cross_product(along, first)
    cosine, sine = radius * _CIRCLE
    rings = [end + cosine * first + sine * second for end in ends]
    # Each outline follows one side, one end, the other side and the other end.
    near = np.where(sine[:, :1] > 0.0, ends[1], ends[0])
    outlines = [near + cosine * side + sine * along for side in (first, second)]
    return _lines("pinned", np.stack([*rings, *outlines]).reshape(-1, 3), _CAPSULE_EDGES)


def _mark(look: str, mark: tuple[FloatArray, IntArray], place: FloatArray, size: float) -> Part:
    corners, edges = mark
    return _lines(look, place + size * corners, edges)


# The lines for a body's balance: the outline of the support, the center of mass as a diamond, and a plumb line down to
# the plane of the support. It ends in a diamond if it is inside the support. Otherwise it ends in a cross, and all
# lines are thick.


def support_lines(corners: FloatArray, up: FloatArray, center: FloatArray, size: float) -> list[Part]:
    """The lines for the balance of one body, in world space; size: the size of the marks.

    corners: (N, 3) corners of its support, a convex outline. up: (3,) unit vector away from the ground. center: (3,)
    the body's center of mass.
    """
    foot = center - ((center - corners.mean(axis=0)) @ up) * up
    balanced = is_inside(corners, up, foot)
    look = "pinned" if balanced else "missed"
    around = np.arange(len(corners))
    outline = _lines(look, corners, np.stack([around, np.roll(around, -1)], axis=1))
    below = _mark(look, _DIAMOND if balanced else _CROSS, foot, size)
    return [outline, _mark(look, _DIAMOND, center, size), dashed(look, center, foot), below]


def is_inside(corners: FloatArray, up: FloatArray, point: FloatArray) -> bool:
    """Whether a point (3,) is above or below a convex outline (N, 3) along `up` (3,), in either winding order."""
    edges = np.roll(corners, -1, axis=0) - corners
    sides = np.cross(edges, point - corners) @ up
    return bool((sides >= 0.0).all() or (sides <= 0.0).all())


# Drawing in the viewport, called by `handlers.py`.

_FONT_SIZE: Final = 12.0
_LABEL_AWAY: Final = 12.0
# The height of a label relative to its letters.
_LINE: Final = 1.3
# The size of a mark relative to its bone's length.
_SIZE: Final = 0.15
# The size of the marks of the center of mass relative to the width of the support.
_BALANCE_SIZE: Final = 0.06
# An effector within this fraction of its chain's length counts as met.
_MET: Final = 1e-3

# Pixels from the left and the bottom of the screen.
_Place: TypeAlias = tuple[float, float]


@dataclass(frozen=True, eq=False)
class GoalView:
    """One goal to draw, in world space: its kind, (3,) points, the size of the mark, and whether it is met.

    kind: "TARGET", "PIN" or "POLE".
    """

    kind: str
    effector: FloatArray
    place: FloatArray
    size: float
    met: bool = True

    @property
    def error(self) -> float:
        """The world distance from the effector to its goal."""
        return float(np.linalg.norm(self.place - self.effector))

    @property
    def lines(self) -> list[Part]:
        """The lines for the goal and its effector. For a pole target, they include a line to it from the joint."""
        if self.kind == "POLE":
            return [_mark("bend", _PYRAMID, self.place, self.size), dashed("bend", self.effector, self.place)]
        look = "missed" if not self.met else "pinned" if self.kind == "PIN" else "met"
        box = [_mark(look, _BOX, self.place, self.size)] if self.kind == "PIN" else []
        if self.met:
            goal = box or [_mark(look, _DIAMOND, self.place, self.size)]
            return [*goal, _mark(look, _DIAMOND, self.effector, self.size * _DOT)]
        miss = _lines(look, np.stack([self.effector, self.place]), along(2))
        return [*box, _mark(look, _CROSS, self.place, self.size), miss]


def views(rig: Object) -> list[GoalView]:
    """The goals of a rig to draw. Goals without a bone or a target are left out.

    While a live rig is dragged, its targets are left out too. They follow when the drag ends, so they are not missed.
    """
    found: list[GoalView] = []
    world, scale, is_dragged = rig.matrix_world, meters_per_unit(rig), is_paused(rig)
    for effector in enabled_effectors(rig):
        bone: PoseBone | None = rig.pose.bones.get(effector.bone)
        if bone is None or (is_dragged and effector.kind == "TARGET"):
            continue
        point = np.array(world @ armature_point(bone, effector.point, effector.offset))
        size = _SIZE * bone.length * scale
        place = None
        if effector.kind == "PIN":
            place = np.array(world @ Vector(effector.pin_location))
        elif effector.target is not None:
            place = _object_place(effector.target, effector.target_bone)
        if place is not None:
            reach = scale * sum(each.length for each in (bone, *bone.parent_recursive))
            met = bool(np.linalg.norm(place - point) <= _MET * reach)
            found.append(GoalView(effector.kind, point, place, size, met))
        if effector.bend_target is not None:
            toward = _object_place(effector.bend_target, effector.bend_bone)
            found.append(GoalView("POLE", np.array(world @ bone.head), toward, size))
    return found


def labels(rig: Object, scene: Scene) -> list[tuple[GoalView, str]]:
    """A rig's missed goals, each with the distance of its effector; the worst one also shows why it was missed."""
    texts: list[tuple[GoalView, str]] = []
    # A pole target is always met.
    for view in sorted((view for view in views(rig) if not view.met), key=lambda view: -view.error):
        text = length_text(view.error, scene)
        texts.append((view, ui_text("pin is {error} off", error=text) if view.kind == "PIN" else text))
    if why := why_short(rig) if texts else "":
        texts[0] = texts[0][0], f"{texts[0][1]}: {ui_message(why)}"
    return texts


def lines_of(*rigs: Object) -> Iterator[Part]:
    """All lines for rigs: goals, balance if it is on, and capsules."""
    for rig in rigs:
        for view in views(rig):
            yield from view.lines
        yield from balance_lines(rig)
        yield from capsule_lines(rig)


def capsule_lines(rig: Object) -> list[Part]:
    """The lines of a rig's capsules, in world space; empty if they are not shown."""
    settings = rig_settings(rig)
    found = fitted(rig, redraw=True) if settings.bake.self_collision != "OFF" and settings.show_capsules else None
    world, lines = np.array(rig.matrix_world), []
    for each in () if found is None else found.capsules:
        matrix = world @ np.array(rig.pose.bones[each.bone].matrix)
        ends = np.array([each.start, each.end]) @ matrix[:3, :3].T + matrix[:3, 3]
        lines.append(capsule(ends, matrix[:3, 0], each.radius * meters_per_unit(rig)))
    return lines


def balance_lines(rig: Object) -> list[Part]:
    """The lines of a rig's support and center of mass, in world space; empty if balance is off."""
    pins = [effector.bone for effector in enabled_effectors(rig) if effector.kind == "PIN"]
    # Nothing is drawn for rigs that can't be solved.
    with suppress(FabrikError):
        check_rig(rig)
        support = support_of(rig, [bone for bone in pins if bone in rig.pose.bones])
        if support is not None:
            world = np.array(rig.matrix_world)
            up, corners = world[:3, :3] @ support.up, support.corners @ world[:3, :3].T + world[:3, 3]
            center = world[:3, :3] @ center_of_mass(rig) + world[:3, 3]
            size = _BALANCE_SIZE * float(np.ptp(corners, axis=0).max())
            return support_lines(corners, up / np.linalg.norm(up), center, size)
    return []


def _object_place(holder: Object, bone: str) -> FloatArray:
    """(3,) world position of an object, or of the head of one of its bones."""
    found = holder.pose.bones.get(bone) if bone and holder.pose else None
    world = holder.matrix_world
    return np.array(world.translation if found is None else world @ found.head)


def apart(places: Sequence[_Place], widths: Sequence[float], height: float) -> list[_Place]:
    """Screen positions of labels, moved up if they would overlap.

    widths: the widths of the labels. height: their height.
    """
    found: dict[int, _Place] = {}
    for label in sorted(range(len(places)), key=lambda each: places[each][1]):
        left, bottom = places[label]
        for other, (x, y) in sorted(found.items(), key=lambda pair: pair[1][1]):
            if left < x + widths[other] and x < left + widths[label] and abs(bottom - y) < height:
                bottom = y + height
        found[label] = left, bottom
    return [found[label] for label in range(len(places))]


def draw_labels(rigs: Sequence[Object], context: Context) -> None:
    """Draw the distances of missed goals into the current viewport."""
    import blf  # noqa: PLC0415
    from bpy_extras.view3d_utils import location_3d_to_region_2d  # noqa: PLC0415

    ui_scale = context.preferences.system.ui_scale
    blf.size(0, _FONT_SIZE * ui_scale)
    blf.color(0, *COLORS["missed"])
    blf.enable(0, blf.SHADOW)
    blf.shadow(0, 3, 0.0, 0.0, 0.0, 1.0)
    away = _LABEL_AWAY * ui_scale
    seen = [
        (text, (place.x + away, place.y + away))
        for rig in rigs
        for view, text in labels(rig, context.scene)
        if (place := location_3d_to_region_2d(context.region, context.region_data, Vector(view.place.tolist())))
    ]
    widths = [blf.dimensions(0, text)[0] for text, _ in seen]
    places = apart([place for _, place in seen], widths, _LINE * _FONT_SIZE * ui_scale)
    for (text, _), place in zip(seen, places, strict=True):
        blf.position(0, *place, 0.0)
        blf.draw(0, text)
    blf.disable(0, blf.SHADOW)


# Color-blind people can distinguish blue, yellow and vermilion. Larger errors also have thicker lines.
_LEVELS: Final = ((COLORS["free"], 1.5), ((1.0, 0.85, 0.2, 1.0), 2.5), (COLORS["binds"], 4.0))


def error_lines(rig: Object) -> Iterator[Part]:
    """The lines of a rig's visible markers on the current frame, in world space."""
    frame = bpy.context.scene.frame_current_final
    for marker in mapped_markers(rig):
        holder: Any = marker.target
        bone: Any = rig.pose.bones.get(marker.bone)
        if holder is None or bone is None or not is_seen((holder, marker.target_bone), frame):
            continue
        if marker.target_bone and marker.target_bone not in holder.pose.bones:
            continue
        point = np.array(rig.matrix_world @ armature_point(bone, marker.point, marker.offset))
        ends = np.stack([_object_place(holder, marker.target_bone), point])
        color, width = _LEVELS[np.digitize(np.linalg.norm(ends[0] - ends[1]), (FAIR, BAD))]
        yield Part(width, ends, along(2), color)
