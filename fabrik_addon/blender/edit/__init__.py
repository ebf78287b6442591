"""Editing a take: changes that spread over frames. Imports `bake` and what is above it."""
