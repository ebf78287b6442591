"""Which marker files can be read, by the ends of their names."""

from typing import Final

SUFFIXES: Final = (".trc", ".c3d")
