"""Run-time type checker of the tests; accepts an int for a float, as PEP 484 does."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
