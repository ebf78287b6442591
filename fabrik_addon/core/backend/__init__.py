"""The two backends of the kernel: arrays over frames, and mathutils for one pose."""
