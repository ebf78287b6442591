"""Readers of marker files. Imports what stands directly in `markers`."""
