"""Pictures of models and trajectories."""
