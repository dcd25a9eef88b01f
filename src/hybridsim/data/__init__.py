"""Recorded data: load files into checked time series in SI units, independent of any robot model."""
