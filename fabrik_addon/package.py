"""What Blender knows the extension by, and keeps its preferences under.

The package around this one where it is installed (`bl_ext.user_default.fabrik`), this one where it is imported from a
checkout.
"""

PACKAGE = __package__.rpartition(".")[0] or __package__
