"""URDF: read files, edit parameters in place, write new files."""
