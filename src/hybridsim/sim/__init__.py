"""The simulator: one step, its integrators, and rollouts."""
