"""Which numbers of a simulation are free, and how a fit sees them."""
