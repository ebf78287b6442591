"""Motion of one armature transferred to another: bone pairs, alignment, and poses. No bpy."""
