"""The two passes over rigid bodies, and what belongs to them. Imports `model`, `limits` and `backend`."""
