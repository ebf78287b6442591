"""All code that uses Blender: reading and writing rigs, operators, panels, drawing.

Blender registers the whole add-on at start but runs little of it. So modules are imported at their first use.
"""

from importlib import import_module
from typing import Any


class OnUse:
    """A module that is imported when one of its names is used.

    name: its name, relative to the folder of this file if it begins with a dot.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name, __package__), name)
        setattr(self, name, found)
        return found
