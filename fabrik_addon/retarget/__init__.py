"""Motion of one armature onto another: which bone is which, how the two stand, and the poses. No bpy."""
