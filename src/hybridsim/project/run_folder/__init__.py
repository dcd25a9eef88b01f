"""Run folders: manifests, checkpoints, history, atomic writes."""
