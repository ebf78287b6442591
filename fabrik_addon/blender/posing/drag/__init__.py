"""Drags bones, with or without a window."""
