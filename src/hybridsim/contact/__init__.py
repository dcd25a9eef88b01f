"""Contact: which shapes can touch, where they do, and the forces and impulses between them."""
