"""Experiments that test claims about models on real recordings, one file each, all with the same structure."""
