"""Blender's handlers for drawing in the viewport, handed back when the extension is switched off."""

from collections.abc import Callable

import bpy


class DrawingHandlers:
    """What an overlay draws: functions, each with when Blender is to call it ("POST_VIEW", "POST_PIXEL")."""

    def __init__(self, *draws: tuple[Callable[[], None], str]) -> None:
        self._draws = draws
        self._handles: list[object] = []

    def start(self) -> None:
        """Draw from now on, where there are windows."""
        if not bpy.app.background:
            for draw, kind in self._draws:
                self._handles.append(bpy.types.SpaceView3D.draw_handler_add(draw, (), "WINDOW", kind))

    def stop(self) -> None:
        """Draw no more."""
        while self._handles:
            bpy.types.SpaceView3D.draw_handler_remove(self._handles.pop(), "WINDOW")

    def is_on(self) -> bool:
        """Whether a handler is there."""
        return bool(self._handles)
