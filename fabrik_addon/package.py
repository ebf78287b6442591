"""The name of this package, which is also the key of its preferences in Blender.

Installed as an extension it is the outer package (`bl_ext.user_default.fabrik`); imported from a checkout, this one.
"""

PACKAGE = __package__.rpartition(".")[0] or __package__
