"""Effectors, pins and targets, now and over frames. Imports `limits` and what is above it."""
