"""Planar swimmer: an actuated chain of rods, in a medium that is modelled by grafts or external forces."""

import numpy as np

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.inertial import solid_capsule
from hybridsim.model.model import Model


def swimmer(links: int = 3, length: float = 0.1, radius: float = 0.01, density: float = 1000.0) -> Model:
    """Chain of capsules along x that moves in the horizontal plane, without gravity.

    The root joint is planar (x, y and yaw of the head); the other joints are actuated.

    Args:
        links: number of links.
        length: length of each link [m].
        radius: radius of each link [m].
        density: density of the links [kg/m³].
    """
    if links < 2:
        raise ValueError(f"a swimmer needs at least two links, not {links}")
    mass = density * np.pi * radius**2 * (length + 4.0 / 3.0 * radius)
    along_z = solid_capsule(mass, radius, 0.5 * length).inertia
    inertia = (along_z[2, 2], along_z[0, 0], along_z[0, 0])
    builder = ModelBuilder(f"swimmer{links}", gravity=(0.0, 0.0, 0.0), timestep=0.002)
    for i in range(links):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else "world",
            joint=f"joint{i}" if i else "root",
            kind="revolute" if i else "planar",
            at=(-length if i else 0.0, 0.0, 0.0),
            axis=(0.0, 0.0, 1.0),
            mass=mass,
            com=(-0.5 * length, 0.0, 0.0),
            inertia=inertia,
            lower=-1.75 if i else -np.inf,
            upper=1.75 if i else np.inf,
        )
        builder.add_geom(
            f"link{i}",
            "capsule",
            (radius, 0.5 * length),
            at=(-0.5 * length, 0.0, 0.0),
            rpy=(0.0, 0.5 * np.pi, 0.0),
        )
        if i:
            builder.add_actuator(f"joint{i}", command_range=(-1.0, 1.0))
    return builder.build()
