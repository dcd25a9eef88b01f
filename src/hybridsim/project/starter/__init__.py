"""StarterProject projects, guessed from a model and its recordings."""
