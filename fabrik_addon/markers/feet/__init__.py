"""Feet that stand: when they do, and poses in which they do not slide. Imports `calibrate` and `human`."""
