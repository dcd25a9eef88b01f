"""Recorded data: load files into checked time series in SI units, independent of any robot model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
