"""Spatial vector algebra (Featherstone) in structured form: rotations, poses, motion and force vectors, inertias."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
