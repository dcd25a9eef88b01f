"""Attributes of URDF joints that hold parameters of the model."""

DOF_ATTRIBUTES = {
    "damping": ("dynamics", "damping"),
    "friction": ("dynamics", "friction"),
    "effort_limit": ("limit", "effort"),
}
"""Element and attribute of each joint parameter with one value in the file for all degrees of freedom of a joint."""
