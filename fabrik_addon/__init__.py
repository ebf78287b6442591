"""FABRIK for Blender: poses rigs and bakes animation from motion-capture markers.

`core` and `markers` work in plain Python; Blender is only imported when the add-on is registered.
"""


def register() -> None:
    """Add the classes, properties and menus to Blender."""
    from .blender import registration

    registration.register()


def unregister() -> None:
    """Remove everything that `register` added."""
    from .blender import registration

    registration.unregister()
