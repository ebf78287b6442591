"""Which files can be read, by the ends of their names."""

from typing import Final

SUFFIXES: Final = (".trc", ".c3d", ".csv", ".npy", ".npz")
"""Files of markers and keypoints."""
