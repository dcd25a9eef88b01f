"""The mechanism: joint types, topology, the `Model` record, the builder and the validation of model descriptions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
