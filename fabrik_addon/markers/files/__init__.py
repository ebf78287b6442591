"""Readers of marker files. Imports `mapping` and the modules directly in `markers`."""
