"""FABRIK for Blender: poses rigs and bakes animation from motion-capture markers.

`core` and `markers` work in plain Python; Blender is imported when the add-on is registered, and not before.
"""

# What Blender knows the extension by, and keeps its preferences under: the package around this one where it is
# installed (`bl_ext.user_default.fabrik`), this one where it is imported from a checkout.
PACKAGE = __package__.rpartition(".")[0] or __package__


def register() -> None:
    """Add the classes, properties and menus to Blender."""
    from .blender import registration

    registration.register()


def unregister() -> None:
    """Take away all that `register` added."""
    from .blender import registration

    registration.unregister()
