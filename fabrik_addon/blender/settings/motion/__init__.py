"""What is kept on a rig of how its motion is shown and edited."""
