"""Rigid bodies that move with their joints: kinematics, Jacobians, masses, goals, and limits as rows."""
