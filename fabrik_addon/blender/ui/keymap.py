"""Adds the keys F and P in Pose mode, except for keymaps in which Blender uses them."""

from typing import Any, Final

import bpy
from bpy.types import Context, UILayout

from .operators.drag import FABRIK_OT_drag
from .operators.effectors import FABRIK_OT_pin

KEYMAP: Final = "Pose"
KEYS: Final[tuple[tuple[str, Any], ...]] = ((FABRIK_OT_drag.bl_idname, "F"), (FABRIK_OT_pin.bl_idname, "P"))
# Keymaps that use these keys: here F is Frame Selected, and P is Set Parent.
WITHOUT_KEYS: Final = frozenset({"Industry_Compatible"})

# The keys as created by Blender, to remove them later; stored only while the extension is enabled.
_ITEMS: Final[list[tuple[bpy.types.KeyMap, bpy.types.KeyMapItem]]] = []


def keys_for(keymap: str) -> tuple[tuple[str, Any], ...]:
    """The operators and their keys for one of Blender's keymaps."""
    return () if keymap in WITHOUT_KEYS else KEYS


def start() -> None:
    """Add the keys, if Blender has a keymap for add-ons."""
    keys = bpy.context.window_manager.keyconfigs.addon
    if keys is None:
        return
    keymap = keys.keymaps.new(KEYMAP, space_type="EMPTY")
    for operator, key in keys_for(bpy.context.preferences.keymap.active_keyconfig):
        _ITEMS.append((keymap, keymap.keymap_items.new(operator, key, "PRESS")))


def draw_keys(layout: UILayout, context: Context) -> None:
    """Draw the keys like Blender's keymap preferences, so that they can be changed."""
    import rna_keymap_ui  # noqa: PLC0415  Blender's own, which only its preferences need

    config: Any = context.window_manager.keyconfigs.user
    own = {operator for operator, _key in KEYS}
    keymap = config.keymaps.get(KEYMAP)
    items = [item for item in keymap.keymap_items if item.idname in own] if keymap is not None else []
    for item in items:
        layout.context_pointer_set("keymap", keymap)
        rna_keymap_ui.draw_kmi([], config, keymap, item, layout, 0)
    if not items:
        layout.label(text="This keymap already uses F and P: use the FABRIK Drag tool", icon="INFO")


def stop() -> None:
    """Remove the keys."""
    while _ITEMS:
        keymap, item = _ITEMS.pop()
        keymap.keymap_items.remove(item)
