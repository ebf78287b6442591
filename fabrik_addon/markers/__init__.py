"""Motion capture: marker files, names, gaps, size, solving and errors.

Imports `core`, `human` and numpy; not Blender.
"""
