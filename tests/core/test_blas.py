"""Single-threaded linear algebra; the number of threads is restored afterwards."""

from threadpoolctl import threadpool_info

from hybridsim.core.blas import limit_blas_to_one_thread


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_one_blas_thread_within_the_context():
    before = threads()
    with limit_blas_to_one_thread():
        assert threads() == {1}
    assert threads() == before
