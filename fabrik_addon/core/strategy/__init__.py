"""Chains without limits, and the choice between poses over frames. Imports all of `core` above it."""
