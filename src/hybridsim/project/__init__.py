"""Project files and run folders."""
