"""The file's armatures, kept from one redraw to the next: going through 10,000 objects takes some 2 ms."""

from typing import Any

import bpy


class Armatures:
    """Finds the armatures when they are first asked for, and again once objects may have come or gone."""

    def __init__(self) -> None:
        self._found: list[bpy.types.Object] | None = None

    def visible(self) -> list[bpy.types.Object]:
        """Those that can be seen in the context's view layer."""
        if not len(bpy.data.armatures):
            return []
        # A file that is opened takes the handlers away with it.
        if self._found is None or self._on_update not in bpy.app.handlers.depsgraph_update_post:
            self._watch(on=True)
            self._found = [thing for thing in bpy.data.objects if thing.type == "ARMATURE"]
        try:
            return [rig for rig in self._found if rig.visible_get()]
        except ReferenceError:
            # One was deleted, and the scene has not been evaluated since.
            self._found = None
            return self.visible()

    def forget(self) -> None:
        """Leave nothing behind."""
        self._found = None
        self._watch(on=False)

    def _watch(self, *, on: bool) -> None:
        events: Any = bpy.app.handlers
        for handlers, handler in (
            (events.depsgraph_update_post, self._on_update),
            (events.undo_post, self._on_undo),
            (events.redo_post, self._on_undo),
        ):
            if on != (handler in handlers):
                (handlers.append if on else handlers.remove)(handler)

    def _on_update(self, _scene: bpy.types.Scene, graph: bpy.types.Depsgraph) -> None:
        """Blender's handler: collections change where objects come, are copied or go."""
        if graph.id_type_updated("COLLECTION"):
            self._found = None

    def _on_undo(self, *_arguments: object) -> None:
        """Blender's handler: all references may be to what is no more."""
        self._found = None
