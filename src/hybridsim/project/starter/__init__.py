"""Starter projects, guessed from a model and its recordings."""
