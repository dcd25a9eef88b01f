"""Free and fixed parameters of a simulation, and the parameter vector θ of a fit."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
