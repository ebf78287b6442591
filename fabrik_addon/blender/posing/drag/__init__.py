"""Dragging a bone, with or without a window."""
