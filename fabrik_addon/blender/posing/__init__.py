"""Poses the current frame: Solve, Live, drags, keys. Imports `goals` and the folders above it."""
