"""Fitting simulations to recordings: windows, residuals, solvers."""
