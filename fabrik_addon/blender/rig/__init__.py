"""Armature objects: reading and writing bones, channels, keyframes and locks. Imports `settings`."""
