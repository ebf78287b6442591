"""Which files can be read, by the ends of their names, and which orders of keypoints are known."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SUFFIXES: Final = (".trc", ".c3d", ".csv", ".npy", ".npz")
"""Files of markers and keypoints."""

ARMATURE_SUFFIXES: Final = (".bvh", ".fbx", ".glb", ".gltf", ".usd", ".usda", ".usdc", ".usdz", ".mvnx")
"""Files of an armature that moves, and of nothing else."""

LAYOUTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MEDIAPIPE": "MediaPipe/FreeMoCap",
        "COCO": "COCO",
        "HALPE": "HALPE",
        "BODY_25": "BODY_25",
        "H36M": "Human3.6M",
        "SMPL": "SMPL",
    }
)
"""The orders in which pose estimators write keypoints, by what an option calls them."""
