"""Opens folded panels of the sidebar, for drivers of a Blender with windows."""

import sys

import bpy


def open_panels(*names):
    """Open panels that are closed at first; all of the add-on's if none is named."""
    kinds = {name: getattr(bpy.types, name) for name in dir(bpy.types) if name.startswith("FABRIK_PT_")}
    for name in names or kinds:
        bpy.utils.unregister_class(kinds[name])
        kinds[name].bl_options = set()
        bpy.utils.register_class(kinds[name])


def open_folds():
    """Open sub-panels that are closed at first, such as Options and Advanced."""
    for name, module in list(sys.modules.items()):
        if ".fabrik_addon.blender.ui." in name and callable(getattr(module, "folded", None)):
            module.folded = _open


def _open(layout, label, of):
    header, body = layout.panel(f"open_{of}_{label}", default_closed=False)
    header.label(text=label)
    return body
