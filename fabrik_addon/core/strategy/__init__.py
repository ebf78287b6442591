"""Selection among several poses: priorities, poles, restarts, poses over frames. Imports all of `core` above it."""
