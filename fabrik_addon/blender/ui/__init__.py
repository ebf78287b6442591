"""The interface: operators, panels, overlays, tool, keys. Only `registration` imports it."""
