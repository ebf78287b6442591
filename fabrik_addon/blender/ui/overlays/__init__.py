"""Overlays in the viewport."""
