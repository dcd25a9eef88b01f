"""hybridsim: robot simulation that fits physics and neural networks to recorded motion."""
