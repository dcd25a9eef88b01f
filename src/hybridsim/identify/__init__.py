"""System identification: windows, residuals, solvers, identifiability and discovery."""
