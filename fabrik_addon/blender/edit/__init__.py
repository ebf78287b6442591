"""Edits motion: changes that spread over frames. Imports `bake` and the packages above it."""
