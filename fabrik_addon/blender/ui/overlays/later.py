"""Timers for work that must not be done while drawing. They end when the add-on is disabled."""

from collections.abc import Callable
from typing import Final

import bpy
from bpy.types import Context, Object

from ...settings.in_use import seen

_TIMERS: Final[list[Callable[[], float | None]]] = []


def call_later(timer: Callable[[], float | None], seconds: float) -> None:
    """Start a timer."""
    if timer not in _TIMERS:
        _TIMERS.append(timer)
    if not bpy.app.timers.is_registered(timer):
        bpy.app.timers.register(timer, first_interval=seconds)


def stop_timers() -> None:
    """Stop all timers."""
    while _TIMERS:
        timer = _TIMERS.pop()
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)


def shown_motion(context: Context) -> Object | None:
    """The rig whose trails are drawn: the active one in Pose mode; None if they are off."""
    rig = context.active_object
    if rig is None or rig.type != "ARMATURE" or context.mode != "POSE":
        return None
    return rig if seen(rig).show_trails else None
