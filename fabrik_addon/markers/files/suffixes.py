"""Which recordings can be read, by the ends of their names."""

from typing import Final

SUFFIXES: Final = (".trc", ".c3d")
# What Blender imports as an armature that moves.
ARMATURE_SUFFIXES: Final = (".bvh", ".fbx", ".glb", ".gltf", ".usd", ".usda", ".usdc", ".usdz")
