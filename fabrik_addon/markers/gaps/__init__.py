"""Gaps in recordings, and how they are filled. Imports only the modules directly in `markers`."""
