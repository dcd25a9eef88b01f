"""Native kernels: JAX functions compiled to machine code for the CPU. Contains no physics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
