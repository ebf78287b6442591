"""Checks the interface in German: labels are ours, whatever Blender's translation of the word; run by `test_gui.py`."""

import importlib
import sys
from pathlib import Path

import addon_utils
import bpy
import gui_drive as g

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.sidebar import open_panels

(ADDON,) = (module.__name__ for module in addon_utils.modules() if module.__name__.endswith(".fabrik"))
translations = importlib.import_module(f"{ADDON}.blender.ui.translations")


def steps():
    view = bpy.context.preferences.view
    view.language = "de_DE"
    view.use_translate_interface = view.use_translate_tooltips = True
    labels_are_ours()
    open_panels("FABRIK_PT_effectors", "FABRIK_PT_limits")
    g.area().spaces.active.show_region_ui = True
    yield 1.0
    with g.override():
        bpy.ops.object.mode_set(mode="POSE")
        rig = bpy.context.object
        rig.data.bones.active = rig.data.bones["upper_arm.L"]
        bpy.ops.fabrik.limit_preset(only_selected=False)
        bpy.ops.fabrik.pin(bones="foot.L")
        bpy.ops.fabrik.add_effector(bone="hand.L")
    for name, category in (("german_pose.png", "FABRIK Pose"), ("german_motion.png", "FABRIK Motion")):
        g.region(rtype="UI").active_panel_category = category
        g.redraw()
        yield 1.0
        g.shot(name)


def labels_are_ours():
    """Check words that Blender's catalogue also translates, often with another meaning."""
    table = translations.languages()["de"]
    look_up = bpy.app.translations.pgettext_iface
    words = {text: german for (context, text), german in table.items() if context == translations.CONTEXT}
    differing = {text for text, german in words.items() if look_up(text) not in {text, german} and " " not in text}
    assert {"Spread", "Manual", "Force", "Ease", "Report"} <= differing, "Blender's catalogue is not there"
    wrong = {text: look_up(text, translations.CONTEXT) for text in words}
    assert {text: found for text, found in wrong.items() if found != words[text]} == {}
    assert look_up("Remove Hold", "Operator") == "Fixierung entfernen", "Blender's context for the undo history"


g.run(steps, limit=240.0)
