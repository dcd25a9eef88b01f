"""The run-time type checker of the tests: as in PEP 484, an int is good where a float is asked for."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
