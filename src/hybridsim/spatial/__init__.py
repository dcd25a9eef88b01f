"""Spatial vector algebra (Featherstone) in structured form: rotations, poses, motion and force vectors, inertias."""
