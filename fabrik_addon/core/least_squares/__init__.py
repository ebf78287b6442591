"""The damped least squares that make a pose exact. Imports `fabrik` and what is above it."""
