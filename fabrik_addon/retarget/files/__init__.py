"""Readers of files of poses: BVH, MVNX and SMPL. No bpy."""
