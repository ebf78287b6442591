"""Feet on the floor: when they are in contact, and poses in which they do not slide.

Imports `calibrate` and `human`.
"""
