"""Experiments that test claims of papers on real recordings, one file each, all with the same structure."""
