"""Rotations, poses, motion and force vectors, inertias: Featherstone's algebra in structured form."""
