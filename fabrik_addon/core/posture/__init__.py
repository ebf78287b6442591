"""The pose that a body would take: of all that meet the goals, the one that moves the least mass."""
