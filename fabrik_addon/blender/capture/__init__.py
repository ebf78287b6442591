"""Recordings in the scene: import, matching, calibration. Imports `goals` and the packages above it."""
