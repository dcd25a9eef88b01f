"""Local solvers: Levenberg–Marquardt, L-BFGS, Adam."""
