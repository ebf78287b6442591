"""Opens folded panels of the sidebar, for drivers of a Blender with windows."""

import sys

import bpy


def open_panels(*names):
    """Open panels that are closed at first; all of the add-on's if none is named."""
    # Blender draws panels in the order in which they are registered, so all are registered again.
    kinds = [kind for kind in bpy.types.Panel.__subclasses__() if kind.__name__.startswith("FABRIK_PT_")]
    for kind in kinds:
        bpy.utils.unregister_class(kind)
    for kind in kinds:
        if not names or kind.__name__ in names:
            kind.bl_options = set()
        bpy.utils.register_class(kind)


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
