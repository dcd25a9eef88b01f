"""Kinematics and dynamics of the tree: one file per algorithm."""
