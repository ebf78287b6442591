"""The add-on's keys, which replace none of Blender's own."""

import importlib.util
from pathlib import Path

import bpy
import pytest

from fabrik_addon.blender.ui.entries import KEYMAP, keys_for

# The keymaps that Blender searches, in this order, for a key pressed over the viewport in Pose mode.
PLACES = {"Pose", "Object Non-modal", "Frames", "3D View", "3D View Generic", "Screen", "Window", "Grease Pencil"}


def own_keys(source, **options):
    """The keys of Blender's own keymaps: (keymap, key, whether Shift, Ctrl, Alt or another key is held)."""
    folder = Path(bpy.utils.system_resource("SCRIPTS")) / "presets" / "keyconfig" / "keymap_data"
    spec = importlib.util.spec_from_file_location(source, folder / f"{source}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, _, content in module.generate_keymaps(module.Params(**options)):
        for _, event, _ in content["items"]:
            held = [event.get(each) for each in ("shift", "ctrl", "alt", "oskey")]
            yield name, event["type"], any(held)


@pytest.mark.parametrize(
    ("keymap", "source", "options"),
    [
        ("Blender", "blender_default", {"select_mouse": "LEFT"}),
        ("Blender_27x", "blender_default", {"select_mouse": "RIGHT", "legacy": True}),
        ("Industry_Compatible", "industry_compatible_data", {}),
    ],
)
def test_the_shortcuts_do_not_conflict_with_blender_s_own(keymap, source, options):
    taken = {key for name, key, held in own_keys(source, **options) if name in PLACES and not held}
    assert {"A", "I"} & taken or {"Q", "W"} <= taken, "the keymap has been read"
    assert KEYMAP in PLACES
    assert not taken & {key for _, key in keys_for(keymap)}


def test_drag_is_on_f_and_pin_on_p_in_blender_s_own_keymap():
    assert dict(keys_for("Blender")) == {"fabrik.drag": "F", "fabrik.pin": "P"}
    assert dict(keys_for("somebody's own")) == dict(keys_for("Blender"))
