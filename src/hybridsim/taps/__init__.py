"""Taps: named quantities of the engine that can be read, recorded and augmented by networks."""
