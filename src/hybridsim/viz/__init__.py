"""Plots of trajectories and fits, and diagrams of blueprints and networks."""
