"""Readers of marker files, the suffixes of files that can be read, and the known keypoint layouts."""

from collections.abc import Mapping
from typing import Final

SUFFIXES: Final = (".trc", ".c3d", ".csv", ".npy", ".npz")
"""Files of markers and keypoints."""

ARMATURE_SUFFIXES: Final = (".bvh", ".fbx", ".glb", ".gltf", ".usd", ".usda", ".usdc", ".usdz", ".mvnx")
"""Files that contain an armature's motion and no markers."""

POSE_SUFFIXES: Final = (".npz", ".mvnx")
"""Files of poses that are imported as armatures; Blender's own importers import others."""

LAYOUTS: Final[Mapping[str, str]] = {
    "MEDIAPIPE": "MediaPipe/FreeMoCap",
    "COCO": "COCO",
    "HALPE": "HALPE",
    "BODY_25": "BODY_25",
    "H36M": "Human3.6M",
    "SMPL": "SMPL",
}
"""The known keypoint layouts: option value to label."""
