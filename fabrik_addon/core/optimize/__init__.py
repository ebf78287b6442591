"""Quadratic programs and the steps that are built from them."""
