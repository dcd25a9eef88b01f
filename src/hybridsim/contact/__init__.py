"""Contact: candidate pairs, collision detection, contact forces and impulses."""
