"""Simulation steps and networks as C99 for controllers."""
