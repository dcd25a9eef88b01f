"""Kinematics and dynamics of kinematic trees, one algorithm per file."""
