"""C back-end: scalar graphs to C99 source code."""
