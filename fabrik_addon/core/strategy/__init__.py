"""Which pose of several: priorities, bend targets, restarts, poses over frames. Imports all of `core` above it."""
