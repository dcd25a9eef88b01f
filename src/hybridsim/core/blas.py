"""Linear algebra on one thread.

The matrices of a fit are small, and what takes time beside them runs on all cores already. BLAS would spread them over
threads that wait for each other by spinning: two fits side by side on two cores took ten times as long as without.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np  # noqa: F401 - its BLAS must be there to be found
from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While entered, or while a function that is decorated with it runs, BLAS has one thread."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
