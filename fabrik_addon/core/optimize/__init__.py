"""Quadratic programs, and solvers built on them."""
