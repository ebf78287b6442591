"""Files of bodies whose joints rotate, read without Blender."""
