"""Types, errors, status codes and numerics shared by all layers."""
