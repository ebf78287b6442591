"""Joint limits, one module a kind. Imports `core.backend` and what stands directly in `core`."""
