"""Attributes of URDF joints that hold parameters of the model."""

DOF_ATTRIBUTES = {
    "effort_limit": ("limit", "effort"),
    "damping": ("dynamics", "damping"),
    "friction": ("dynamics", "friction"),
}
"""Element and attribute of each joint parameter with one value in the file for all degrees of freedom of a joint."""
