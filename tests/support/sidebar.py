"""Chooses and opens panels of the sidebar, for drivers of a Blender with windows."""

import sys

import bpy


def all_panels():
    """The add-on's panels, in the order in which it registers them."""
    (module,) = (module for name, module in sys.modules.items() if name.endswith(".blender.ui.panels"))
    return [kind for kind in module.CLASSES if issubclass(kind, bpy.types.Panel)]


def show_panels(*kinds):
    """Show these panels instead of the add-on's. Blender draws them in the order in which they are registered."""
    for kind in bpy.types.Panel.__subclasses__():
        if kind.__name__.startswith("FABRIK_PT_") and kind.is_registered:
            bpy.utils.unregister_class(kind)
    for kind in kinds:
        bpy.utils.register_class(kind)


def open_panels(*names, only=False):
    """Open panels that are closed at first; all of the add-on's if none is named. only: don't show the others."""
    opened = [kind for kind in all_panels() if not names or kind.__name__ in names]
    for kind in opened:
        kind.bl_options = set()
    show_panels(*(opened if only else all_panels()))


def open_folds(*panels):
    """Open sub-panels that are closed at first, such as Options and Advanced.

    panels: whose sub-panels are opened, named as in calls of `folded`, such as "limits"; all if none is named.
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
        if ".blender.ui." in name and callable(getattr(module, "folded", None))
    ]
    folded = users[0].folded
    for module in users:
        module.folded = opened
