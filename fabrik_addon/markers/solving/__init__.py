"""Stages of solving a recording: every frame, outliers, gaps, and bones that the markers do not determine."""
