"""Watches the rig of a modal operator, because other windows can change it."""

from typing import Any

import bpy


class Watch:
    """Detects whether a rig has changed since a modal operator started, until `stop`.

    After an undo or the removal of bones, references must not be used anymore.
    """

    def __init__(self, rig: bpy.types.Object) -> None:
        self.name = rig.name
        self._rig, self._mode = rig, rig.mode
        self._undone = False
        for handlers in self._histories():
            handlers.append(self._note_undo)

    def stop(self) -> None:
        """Stop watching."""
        for handlers in self._histories():
            handlers.remove(self._note_undo)

    def why_lost(self) -> str:
        """The reason why the operator cannot continue with the rig; "" if it can."""
        if self._undone:
            return f"An undo or redo happened while {self.name!r} was being processed"
        try:
            mode = self._rig.mode
        except ReferenceError:
            return f"{self.name!r} was deleted during processing"
        return "" if mode == self._mode else f"The mode of {self.name!r} changed during processing"

    def _note_undo(self, *_arguments: object) -> None:
        self._undone = True

    @staticmethod
    def _histories() -> list[Any]:
        """The handlers of undo and redo."""
        return [bpy.app.handlers.undo_post, bpy.app.handlers.redo_post]
