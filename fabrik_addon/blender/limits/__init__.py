"""Sets, finds and applies joint limits. Imports `rig` and `settings`."""
