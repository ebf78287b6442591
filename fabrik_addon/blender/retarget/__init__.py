"""Retargets the motion of another armature, or of a file, to a rig."""
