"""From traced JAX functions to scalar graphs."""
