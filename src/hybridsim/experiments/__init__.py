"""Experiments on real recordings and the papers' claims, one file each, all of one shape."""
