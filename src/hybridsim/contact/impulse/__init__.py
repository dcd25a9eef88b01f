"""Impulse contact: a nonlinear complementarity problem (NCP) in the velocities."""
