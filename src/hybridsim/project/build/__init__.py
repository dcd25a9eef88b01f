"""Fit problem of a project: model, recordings, networks, parameters, stages."""
