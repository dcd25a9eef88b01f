"""Settings of every test: double precision, no silent broadcasting, no silent change of type."""

import os
import shutil
import tempfile
from importlib.metadata import version

import jax
import pytest
from hypothesis import HealthCheck, Phase, settings

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# every example compiles: a handful of them, reproducible, without a deadline, and without the long search for a smaller
# failing one (a failing example is a seed already)
settings.register_profile(
    "hybridsim",
    max_examples=4,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("hybridsim")


@pytest.fixture(scope="module", autouse=True)
def clear_compilation_caches():
    """Compiled functions of one test file are of no use to the next and would pile up in memory."""
    yield
    jax.clear_caches()


def pytest_configure(config):
    """Let XLA compile quickly, and keep kernels in a folder of their own, shared by the processes of the tests."""
    os.environ.setdefault("XLA_FLAGS", _fast_to_compile(only_default_tests=config.option.markexpr == "not slow"))
    if "HYBRIDSIM_CACHE" not in os.environ:
        os.environ["HYBRIDSIM_CACHE"] = config.own_kernel_cache = tempfile.mkdtemp(prefix="hybridsim-tests-")


def _fast_to_compile(*, only_default_tests: bool) -> str:
    """Flags for tests, which compile far more than they run."""
    flags = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    if only_default_tests and version("jaxlib").startswith("0.10."):
        # Takes three quarters off the time of large programs. Later versions refuse it. Not for the slow tests: with
        # both this and no optimisation XLA makes NaN of ordinary numbers in the implicit derivative of a friction cone.
        flags += " --xla_cpu_use_fusion_emitters=false"
    return flags


def pytest_unconfigure(config):
    """Remove that folder."""
    if own := getattr(config, "own_kernel_cache", None):
        shutil.rmtree(own, ignore_errors=True)
