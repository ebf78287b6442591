"""Fits a rig and a recording to each other. Imports `mapping` and `core`."""
