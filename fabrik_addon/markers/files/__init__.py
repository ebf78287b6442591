"""Readers of marker files, the suffixes of files that can and cannot be read, and the known keypoint layouts."""

from collections.abc import Mapping
from typing import Final

SUFFIXES: Final = (".trc", ".c3d", ".csv", ".npy", ".npz")
"""Files of markers and keypoints."""

ARMATURE_SUFFIXES: Final = (".bvh", ".fbx", ".glb", ".gltf", ".usd", ".usda", ".usdc", ".usdz", ".mvnx")
"""Files that contain an armature's motion and no markers."""

POSE_SUFFIXES: Final = (".npz", ".mvnx", ".bvh")
"""Files of poses for our own readers; Blender's importers read others."""

LAYOUTS: Final[Mapping[str, str]] = {
    "MEDIAPIPE": "MediaPipe / FreeMoCap",
    "COCO": "COCO",
    "HALPE": "HALPE",
    "BODY_25": "BODY_25",
    "H36M": "Human3.6M",
    "SMPL": "SMPL",
}
"""The known keypoint layouts: option value to label."""

_VIDEO: Final = "is a video: convert it to a .trc file with Pose2Sim or OpenCap"
_PICKLED: Final = (
    "has pickled Python objects, which are not safe to read: save its arrays with numpy.savez as .npz, or export it as "
    ".bvh, .trc or .c3d"
)
ADVICE: Final[Mapping[str, str]] = {
    ".amc": "has Acclaim motion: convert it to .bvh",
    ".asf": "is an Acclaim skeleton: convert it and its .amc file to .bvh",
    ".avi": _VIDEO,
    ".bip": "is a 3ds Max Biped: export it as .bvh or .fbx",
    ".blend": "is a Blender file: export its armature as .bvh, .fbx or .glb",
    ".cap": "is a Cortex capture: export its markers as .trc or .c3d",
    ".dae": "is COLLADA: export it as .fbx or .glb",
    ".htr": "is a Cortex hierarchy: export its markers as .trc or .c3d, or the skeleton as .bvh",
    ".mat": "has MATLAB data: export its markers as .c3d or .trc",
    ".mot": "has OpenSim motion: use the .trc file that it was made from",
    ".mov": _VIDEO,
    ".mp4": _VIDEO,
    ".mvn": "is an Xsens MVN recording: export it as .mvnx, .bvh, .fbx or .c3d",
    ".pkl": _PICKLED,
    ".pt": _PICKLED,
    ".pth": _PICKLED,
    ".qtm": "is a Qualisys QTM recording: export its markers as .c3d",
    ".smpl": "has SMPL poses: change its suffix to .npz",
    ".tak": "is a Motive take: export its markers as .c3d, or the skeleton as .bvh or .fbx",
    ".trb": "has binary Cortex tracks: export them as .trc or .c3d",
    ".tsv": "has Qualisys tracks as text: export its markers as .c3d",
    ".vmd": "has MikuMikuDance motion: import it in Blender with an add-on, and export the armature as .bvh",
    ".x1d": "has raw Vicon data: process it in Nexus or Shogun, and export it as .c3d",
    ".x2d": "has raw Vicon data: process it in Nexus or Shogun, and export it as .c3d",
}
"""File types that are not supported, and what to do."""
