"""Execution of compiled kernels from NumPy and JAX, and their persistent cache."""
