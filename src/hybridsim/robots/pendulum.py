"""Pendulums of one, two and n links, and the acrobot.

Links extend along −z and rotate about y; at q = 0 they hang straight down.
"""

from collections.abc import Sequence

import numpy as np

from hybridsim.core.types import ArrayLike
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.model import Model


def pendulum(length: float = 1.0, mass: float = 1.0, damping: float = 0.0) -> Model:
    """Thin rod hinged at one end."""
    return n_link_pendulum(1, lengths=[length], masses=[mass], damping=damping, name="pendulum")


def double_pendulum(
    lengths: Sequence[float] = (1.0, 1.0), masses: Sequence[float] = (1.0, 1.0), damping: float = 0.0
) -> Model:
    """Two thin rods in series."""
    return n_link_pendulum(2, lengths=lengths, masses=masses, damping=damping, name="double_pendulum")


def n_link_pendulum(
    links: int,
    *,
    lengths: ArrayLike | None = None,
    masses: ArrayLike | None = None,
    inertias: ArrayLike | None = None,
    damping: float = 0.0,
    name: str = "",
    timestep: float = 0.001,
) -> Model:
    """Chain of rods `link0`, `link1`, … on joints `joint0`, `joint1`, and so on.

    Args:
        links: number of links.
        lengths: lengths of the links [m]; 1 m by default.
        masses: masses of the links [kg]; 1 kg by default.
        inertias: transverse moments of inertia about the centre of mass [kg·m²]; those of thin rods by default.
        damping: viscous damping of every joint [N·m·s/rad].
        name: name of the model.
        timestep: time step of the simulation [s].
    """
    L = np.asarray(np.ones(links) if lengths is None else lengths, dtype=float)
    m = np.asarray(np.ones(links) if masses is None else masses, dtype=float)
    I = np.asarray(m * L**2 / 12.0 if inertias is None else inertias, dtype=float)
    if not len(L) == len(m) == len(I) == links:
        raise ValueError(f"{links} links need {links} lengths, masses and inertias")
    chain = ModelBuilder(name or f"pendulum{links}", timestep=timestep)
    for i in range(links):
        chain.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else "world",
            joint=f"joint{i}",
            at=(0.0, 0.0, -L[i - 1] if i else 0.0),
            axis=(0.0, 1.0, 0.0),
            mass=m[i],
            com=(0.0, 0.0, -0.5 * L[i]),
            # axial moment of a rod whose radius is 1 % of its length, since it must not be zero
            inertia=(I[i], I[i], min(I[i], 0.5 * m[i] * (0.01 * L[i]) ** 2)),
            damping=damping,
        )
        chain.add_geom(f"link{i}", "capsule", (0.01 * L[i], 0.5 * L[i]), at=(0.0, 0.0, -0.5 * L[i]))
    chain.add_frame("tip", f"link{links - 1}", at=(0.0, 0.0, -L[-1]))
    return chain.build()


def acrobot() -> Model:
    """Double pendulum actuated at the elbow only."""
    robot = ModelBuilder("acrobot")
    for body, parent, joint, z in (("upper", "world", "shoulder", 0.0), ("lower", "upper", "elbow", -1.0)):
        robot.add_body(
            body,
            parent=parent,
            joint=joint,
            at=(0.0, 0.0, z),
            axis=(0.0, 1.0, 0.0),
            mass=1.0,
            com=(0.0, 0.0, -0.5),
            inertia=(1.0 / 12.0, 1.0 / 12.0, 5e-5),
            damping=0.05,
        )
        robot.add_geom(body, "capsule", (0.01, 0.5), at=(0.0, 0.0, -0.5))
    robot.add_frame("tip", "lower", at=(0.0, 0.0, -1.0))
    robot.add_actuator("elbow", command_range=(-10.0, 10.0))
    return robot.build()
