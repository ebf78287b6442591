"""Effectors, pins and targets, now and over frames. Imports `limits` and the folders above it."""
