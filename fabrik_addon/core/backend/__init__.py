"""The two number systems of the kernel: arrays over frames, and mathutils for one pose. Imports `core.arrays` alone."""
