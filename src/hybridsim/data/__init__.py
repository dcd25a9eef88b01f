"""Recorded data: files into clean series in SI units; knows no robot."""
