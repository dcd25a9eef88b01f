"""Calling compiled kernels: from NumPy, from JAX, and from the cache on disk."""
