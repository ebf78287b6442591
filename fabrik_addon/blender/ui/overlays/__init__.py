"""What is drawn in the viewport."""
