"""Posing the current frame: solve, live, keys. Imports `goals` and what is above it."""
