"""The user interface: operators, panels, overlays, tool, keys. Only `registration` imports it."""
