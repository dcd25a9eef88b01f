"""Types, errors, result codes and numerics shared by every layer."""
