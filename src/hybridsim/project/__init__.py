"""Project files and the records of runs."""
