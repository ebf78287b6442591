"""Drawing in the viewport."""
