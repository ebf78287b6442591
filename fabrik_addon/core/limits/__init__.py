"""Joint limits, one module for each kind. Imports `core.backend` and the modules directly in `core`."""
