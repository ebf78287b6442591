"""What people see: operators, panels, overlays, tool, keys. Nothing but `registration` imports it."""
