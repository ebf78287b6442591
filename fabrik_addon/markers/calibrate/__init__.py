"""Making a rig and a recording fit each other. Imports `mapping` and `core`."""
