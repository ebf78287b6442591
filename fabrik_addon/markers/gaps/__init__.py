"""Where markers are not seen, and what is put there. Imports what stands directly in `markers`."""
