"""Free and fixed parameters of a simulation, and the parameter vector θ of a fit."""
