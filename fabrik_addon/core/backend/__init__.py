"""The two backends of the kernel: arrays over frames, and mathutils for one pose.

They import only `core.arrays` and `core.rotations`.
"""
