"""The two passes of FABRIK over rigid bodies."""
