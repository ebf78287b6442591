"""Stages of solving a recording: every frame, outliers, gaps, what markers leave undecided."""
