"""Files of `hybridsim demo`: model, recordings and projects of a two-link arm."""
