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


def open_folds(*panels):
    """Open sub-panels that are closed at first, such as Options and Advanced: of some panels, or all.

    panels: as `folded` has them, such as "limits".
    """

    def opened(layout, label, of):
        if panels and of not in panels:
            return folded(layout, label, of)
        header, body = layout.panel(f"open_{of}_{label}", default_closed=False)
        header.label(text=label)
        return body

    users = [
        module
        for name, module in list(sys.modules.items())
        if ".fabrik_addon.blender.ui." in name and callable(getattr(module, "folded", None))
    ]
    folded = users[0].folded
    for module in users:
        module.folded = opened
