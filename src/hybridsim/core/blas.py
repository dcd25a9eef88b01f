"""Single-threaded linear algebra.

The matrices of a fit are small, and the rollouts, which dominate its time, already use all cores. Without this limit
BLAS splits each product over threads that busy-wait for each other: two parallel fits on two cores took ten times as
long as with the limit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def limit_blas_to_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread, as a context manager or decorator."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - loads the BLAS of SciPy and of NumPy; here because it loads slowly

    return ThreadpoolController()
