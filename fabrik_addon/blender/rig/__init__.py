"""Reads and writes bones, channels, keyframes and locks of armature objects. Imports `settings`."""
