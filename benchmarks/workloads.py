"""The workloads of the gradient benchmark as data: mechanisms, initial states and steps.

W1  double pendulum, 500 steps of 10 ms; parameters: 2 masses, 2 lengths, 2 inertias
W2  five-link pendulum without contact, 5000 steps of 1 ms; parameters: 5 masses, 5 lengths
W3  quadruped without contact: a free trunk and 12 sprung hinges, 50 steps of 2 ms; parameters: mass, centre of mass and
    principal moments of each of the 13 bodies
W4  forward dynamics of a chain of n hinges, n = 2, 8, 32, 128; parameters: n masses, n lengths, n inertias
5a  network 5 → 10 → 10 with tanh after both layers and a bias on its input: 175 parameters

Steps are semi-implicit Euler: qd += dt·qdd(q, qd, τ), then q += dt·qd with the new qd. The loss of a rollout is Σ q²
over all new states. A mechanism is a function from its parameters to bodies, so that a peer can pass its own scalar
type (floats, traced arrays, symbols) and differentiate through it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

GRAVITY = 9.81
"""Downwards along z [m/s²]."""

Scalar = Any
"""A float, or the scalar type of a peer."""


@dataclass(frozen=True)
class Shape:
    """A collision shape of a body."""

    kind: str
    """"sphere" or "box"."""
    size: Sequence[Scalar]
    """Radius, or half lengths [m]."""
    position: Sequence[Scalar]
    """Position in the body frame [m]."""


@dataclass(frozen=True)
class Body:
    """A rigid body and its joint; at q = 0 its axes are those of its parent."""

    name: str
    parent: int
    """Index of the parent body; −1 is the world."""
    joint: str
    """"x", "y", "z" for a hinge about that axis, or "free"."""
    position: Sequence[Scalar]
    """Position of the joint in the parent frame [m]."""
    mass: Scalar
    centre: Sequence[Scalar]
    """Centre of mass in the body frame [m]."""
    inertia: Sequence[Scalar]
    """Moments of inertia about the centre of mass along the body axes [kg·m²]."""
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Workload:
    """A mechanism with its parameters, and one rollout of it.

    A free joint comes first; its coordinates are position and quaternion (w, x, y, z), its velocities the linear
    velocity in the world frame and the angular velocity in the body frame.
    """

    name: str
    title: str
    bodies: Callable[[Sequence[Scalar]], list[Body]]
    parameters: np.ndarray
    parameter_names: str
    q0: np.ndarray
    dt: float
    steps: int
    stiffness: float = 0.0
    """Spring stiffness of every hinge, relaxed at zero [N·m/rad]."""
    damping: float = 0.0
    """Damping of every hinge [N·m·s/rad]."""
    friction: float | None = None
    """Coulomb friction coefficient of the shapes on the ground z = 0; None without ground."""

    @property
    def is_free(self) -> bool:
        return self.bodies(self.parameters)[0].joint == "free"

    @property
    def nq(self) -> int:
        return len(self.q0)

    @property
    def nv(self) -> int:
        return self.nq - self.is_free

    def nominal_bodies(self) -> list[Body]:
        """Bodies with the nominal parameters."""
        return self.bodies([float(p) for p in self.parameters])


def hanging_links(axes: str, masses, lengths, inertias, centre: float, height: float = 0.0) -> list[Body]:
    """A chain hanging along −z, with centres of mass at the fraction `centre` of each link."""
    return [
        Body(f"link{i}", i - 1, axis, (0, 0, -lengths[i - 1] if i else height), m, (0, 0, -centre * L), (I, I, I))
        for i, (axis, m, L, I) in enumerate(zip(axes, masses, lengths, inertias, strict=True))
    ]


def _double_pendulum(p) -> list[Body]:
    return hanging_links("yy", p[0:2], p[2:4], p[4:6], centre=0.5)


W1 = Workload(
    "W1",
    "double pendulum",
    _double_pendulum,
    np.array([1.0, 1.0, 1.0, 1.0, 0.01, 0.01]),
    "masses, lengths, inertias",
    q0=np.array([1.0, 0.5]),
    dt=0.01,
    steps=500,
)

SPHERE_INERTIA = 0.4 * 1.0 * 0.15**2
"""Inertia of the W2 links: 1 kg spheres of 0.15 m radius [kg·m²]."""


def _five_links(p) -> list[Body]:
    return hanging_links("yyyyy", p[0:5], p[5:10], [SPHERE_INERTIA] * 5, centre=1.0, height=1.0)


W2 = Workload(
    "W2",
    "five-link pendulum without contact",
    _five_links,
    np.array([1.0] * 5 + [0.5] * 5),
    "masses, lengths",
    q0=np.array([0.5 * np.pi, 0.0, 0.0, 0.0, 0.0]),
    dt=0.001,
    steps=5000,
)

_TRUNK = (4.7, (0.0, 0.0, 0.0), (0.017, 0.057, 0.065))
_LEG = (
    ("hip", "x", 0.7, (0.0, 0.0, 0.0), (0.0005, 0.0008, 0.0006)),
    ("thigh", "y", 1.0, (-0.035, 0.0, -0.07), (0.0055, 0.0051, 0.0012)),
    ("calf", "y", 0.17, (0.05, 0.0, -0.05), (0.003, 0.003, 0.0001)),
)
_CORNERS = {"FR": (1, -1), "FL": (1, 1), "RR": (-1, -1), "RL": (-1, 1)}


def _quadruped(p) -> list[Body]:
    def body(i, name, parent, joint, position):
        mass, *others = [p[7 * i + k] for k in range(7)]
        return Body(name, parent, joint, position, mass, others[:3], others[3:])

    bodies = [body(0, "trunk", -1, "free", (0, 0, 0))]
    for leg, (front, left) in _CORNERS.items():
        i = len(bodies)
        bodies += [
            body(i, f"{leg}_hip", 0, "x", (0.183 * front, 0.047 * left, 0)),
            body(i + 1, f"{leg}_thigh", i, "y", (0, 0.085 * left, 0)),
            body(i + 2, f"{leg}_calf", i + 1, "y", (-0.14, 0, -0.14)),
        ]
    return bodies


def _quadruped_parameters() -> np.ndarray:
    leg = [[mass, *centre, *inertia] for _, _, mass, centre, inertia in _LEG]
    mass, centre, inertia = _TRUNK
    return np.ravel([[mass, *centre, *inertia], *(4 * leg)])


W3 = Workload(
    "W3",
    "quadruped without contact",
    _quadruped,
    _quadruped_parameters(),
    "mass, centre of mass and principal moments of 13 bodies",
    q0=np.array([0.0, 0.0, 0.32, 1.0, 0.0, 0.0, 0.0, *(4 * [0.1, 0.3, -0.2])]),
    dt=0.002,
    steps=50,
    stiffness=50.0,
    damping=1.0,
)

CHAIN_LENGTHS = (2, 8, 32, 128)
BATCH = 1024
OTHER_BATCHES = (4, 16, 64, 256, 4096)
"""Further batch sizes, in addition to 1 and `BATCH`."""
BATCH_STEPS = 500
"""Maximum number of steps per trajectory of a batch; the time per step is the same with more."""


def chain(n: int) -> Workload:
    """W4: hinges alternating about y and x, each link 1 kg, 0.2 m and 0.01 kg·m²."""
    return Workload(
        f"W4-{n}",
        f"chain of {n} links",
        lambda p: hanging_links(("yx" * n)[:n], p[0:n], p[n : 2 * n], p[2 * n : 3 * n], centre=0.5),
        np.array([1.0] * n + [0.2] * n + [0.01] * n),
        "masses, lengths, inertias",
        q0=np.zeros(n),
        dt=0.001,
        steps=1,
    )


def random_states(workload: Workload, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates, velocities and torques in ±0.5, ±0.5 and ±1, one row per state; a free base has a quaternion near
    the identity."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-0.5, 0.5, (count, workload.nq))
    qd = rng.uniform(-0.5, 0.5, (count, workload.nv))
    tau = rng.uniform(-1.0, 1.0, (count, workload.nv))
    if workload.is_free:
        q[:, 3] += 2.0
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q, qd, tau


def initial_coordinates(workload: Workload, batch: int) -> np.ndarray:
    """Initial coordinates of a batch: the nominal ones first, then small perturbations of them."""
    q = np.tile(workload.q0, (batch, 1))
    rng = np.random.default_rng(0)
    first_hinge = 7 if workload.is_free else 0
    q[1:, first_hinge:] += rng.uniform(-0.1, 0.1, (batch - 1, workload.nq - first_hinge))
    if first_hinge == workload.nq:
        q[1:, 2] += rng.uniform(0.0, 0.01, batch - 1)
    return q


NETWORK_LAYERS = (5, 10, 10)


def network_parameters() -> tuple[np.ndarray, np.ndarray]:
    """The 175 parameters (row-major weights of both layers, then biases of input and layers) and the input."""
    rng = np.random.default_rng(0)
    n_in, n_hidden, n_out = NETWORK_LAYERS
    weights = rng.normal(0.0, 0.3, n_in * n_hidden + n_hidden * n_out)
    biases = rng.normal(0.0, 0.1, n_in + n_hidden + n_out)
    return np.concatenate([weights, biases]), rng.uniform(-1.0, 1.0, n_in)


def network(parameters, x, tanh) -> list[Scalar]:
    """Outputs of the network, computed with scalars; its loss is the sum of their squares."""
    n_in, n_hidden, n_out = NETWORK_LAYERS
    first, second = n_in * n_hidden, n_hidden * n_out
    biases = parameters[first + second :]
    values = [x[i] + biases[i] for i in range(n_in)]
    for start, bias, width in ((0, n_in, n_hidden), (first, n_in + n_hidden, n_out)):
        rows = [parameters[start + k * len(values) : start + (k + 1) * len(values)] for k in range(width)]
        sums = [sum((row[i] * v for i, v in enumerate(values)), biases[bias + k]) for k, row in enumerate(rows)]
        values = [tanh(s) for s in sums]
    return values


def mjcf(workload: Workload, motors: bool = False, solver: str = "") -> str:
    """The workload as MJCF text.

    Args:
        workload: the workload.
        motors: whether to add a motor to every hinge.
        solver: further options of MuJoCo's contact solver.
    """
    bodies = workload.nominal_bodies()

    def text(values) -> str:
        return " ".join(repr(float(x)) for x in values)

    def geom(name: str, shape: Shape) -> str:
        attributes = f'contype="1" conaffinity="0" friction="{workload.friction}" mass="0"'
        placement = f'pos="{text(shape.position)}" size="{text(shape.size)}"'
        return f'<geom name="{name}" type="{shape.kind}" {placement} {attributes}/>'

    def element(i: int) -> str:
        b = bodies[i]
        spring = f'stiffness="{workload.stiffness}" damping="{workload.damping}"'
        axis = " ".join("1" if b.joint == a else "0" for a in "xyz")
        joint = f'<joint name="{b.name}_joint" type="hinge" axis="{axis}" {spring}/>'
        children = "".join(element(k) for k, child in enumerate(bodies) if child.parent == i)
        return (
            f'<body name="{b.name}" pos="{text(b.position)}">{"<freejoint/>" if b.joint == "free" else joint}'
            f'<inertial pos="{text(b.centre)}" mass="{text([b.mass])}" diaginertia="{text(b.inertia)}"/>'
            f"{''.join(geom(f'{b.name}_shape{k}', shape) for k, shape in enumerate(b.shapes))}{children}</body>\n"
        )

    roots = "".join(element(i) for i, b in enumerate(bodies) if b.parent < 0)
    hinges = [b.name for b in bodies if b.joint != "free"]
    actuators = "".join(f'<motor joint="{name}_joint"/>' for name in hinges) if motors else ""
    contact, floor = 'contact="disable"', ""
    if workload.friction is not None:
        contact = ""
        attributes = f'contype="0" conaffinity="1" friction="{workload.friction}"'
        floor = f'<geom name="floor" type="plane" size="10 10 1" {attributes}/>\n'
    return (
        f'<mujoco model="{workload.title}">'
        f'<option timestep="{workload.dt}" gravity="0 0 {-GRAVITY}" integrator="Euler" {solver}>'
        f'<flag {contact} eulerdamp="disable"/></option>\n'
        f"<worldbody>\n{floor}{roots}</worldbody><actuator>{actuators}</actuator></mujoco>\n"
    )
