"""From scalar graphs to C99 text."""
