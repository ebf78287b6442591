"""Recordings in the scene: import, matching, calibration. Imports `goals` and what is above it."""
