"""First project files, guessed from a model and its recordings."""
