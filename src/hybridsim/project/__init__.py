"""Project files and run records."""
