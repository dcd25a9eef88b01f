"""Configuration of all tests: double precision, no implicit rank or type promotion."""

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

# Every example is compiled, so few are run, reproducibly and without a deadline. Failing examples are not shrunk, as
# they consist of a seed already.
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
    """Clear JAX's compilation caches after each test module: they are not reused and would fill the memory."""
    yield
    jax.clear_caches()


def pytest_configure(config):
    """Set XLA flags for short compile times, and a temporary kernel cache that all test processes share."""
    os.environ.setdefault("XLA_FLAGS", _fast_compile_flags(only_default_tests=config.option.markexpr == "not slow"))
    if "HYBRIDSIM_CACHE" not in os.environ:
        os.environ["HYBRIDSIM_CACHE"] = config.temporary_kernel_cache = tempfile.mkdtemp(prefix="hybridsim-tests-")


def _fast_compile_flags(*, only_default_tests: bool) -> str:
    """XLA flags that reduce compile time, which dominates that of the tests."""
    flags = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    if only_default_tests and version("jaxlib").startswith("0.10."):
        # Reduces the compile time of large programs by three quarters; later versions reject the flag. Not for slow
        # tests: without optimization as well, XLA returns NaN for the implicit derivative of a friction cone.
        flags += " --xla_cpu_use_fusion_emitters=false"
    return flags


def pytest_unconfigure(config):
    """Remove the temporary kernel cache."""
    if folder := getattr(config, "temporary_kernel_cache", None):
        shutil.rmtree(folder, ignore_errors=True)
