"""Free and fixed parameters of a simulation, and the vector θ that a fit works on."""
