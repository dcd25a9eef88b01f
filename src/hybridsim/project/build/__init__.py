"""From a project file to a fit: model, recordings, networks, parameters, stages."""
