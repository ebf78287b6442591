"""The two passes of FABRIK over rigid bodies. Imports `model`, `limits` and `backend`."""
