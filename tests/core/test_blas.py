"""Linear algebra on one thread, and on all of them again afterwards."""

from threadpoolctl import threadpool_info

from hybridsim.core.blas import one_blas_thread


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_for_a_while():
    before = threads()
    with one_blas_thread():
        assert threads() == {1}
    assert threads() == before
