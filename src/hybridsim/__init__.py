"""hybridsim: robot simulator and system identification with neural networks inside the physics.

The public names are those of `__init__.pyi`, here and in the packages that it lists, such as `hybridsim.contact`. They
are loaded on first use, so that `import hybridsim` is fast.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
