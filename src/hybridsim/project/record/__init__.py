"""Run records: manifests, checkpoints, history, atomic writes."""
