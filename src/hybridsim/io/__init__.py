"""Reading and writing model files: URDF and MJCF."""
