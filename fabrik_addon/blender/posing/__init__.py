"""Posing the current frame: solve, live, keys. Imports `goals` and the folders above it."""
