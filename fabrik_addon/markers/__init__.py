"""Motion-capture data: files, names, gaps, size, solving and errors. Imports `core` and `human`; numpy, no Blender."""
