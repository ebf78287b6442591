"""Motion of another armature, or of a file, onto a rig."""
