"""Setting, finding and using joint limits. Imports `rig` and `settings`."""
