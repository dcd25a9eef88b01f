"""Motion of a laboratory double pendulum, reconstructed to 0.3 mrad with friction and drag, 0.2 mrad with a network.

Claim       with Stribeck friction and air drag on both rods, all passive, held-out windows of one second are
            reconstructed to 0.32 mrad (median); with a network of 58 weights to 0.22 mrad.
Recordings  26 runs of 2.667 s at 1 kHz, segments of one decaying swing (dynamicslab/MultiArm-Pendulum, MIT licence):
            `lab_double_pendulum/segments.npz` with `states` (26, 2667, 4): absolute angles and velocities (zero is
            upright), and `published`: masses, centres of mass, length, inertias, damping and gravity by the authors.
Command     hybridsim experiment lab_pendulum
Time        about two minutes on two cores

Every fourth run is held out. Without torques only ratios of inertias are identifiable, so both masses and the
centre of mass of the second link along the link are fixed at their published values. The offsets of both centres of
mass from the link axes and of the first encoder are free; they absorb a tilt and the offset of the second encoder.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from hybridsim.data.run import Run
from hybridsim.experiments.figures import draw_errors
from hybridsim.experiments.recordings import recordings_folder
from hybridsim.experiments.study import Case, Goal, Study, error_metrics, held_out_errors
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles
from hybridsim.model.model import Model
from hybridsim.networks.drag import RodDrag
from hybridsim.networks.mlp import MLP
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots.pendulum import n_link_pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft

DT = 0.002
SUBSAMPLING = 2
"""Ratio by which the 1 kHz samples are subsampled; their noise of 0.05 mrad is far below the model error."""
NOISE = 1e-3
"""Standard deviation of the errors [rad], which are dominated by model error."""
HELD_OUT = range(1, 26, 4)
WINDOWS = (1.0, 2.65)
CHANNELS = {"phi1": "joint.q[joint0]", "phi2": "joint.q[joint0] + joint.q[joint1]"}
ROD_2_LENGTH = 0.25
"""Approximate length of the second rod [m]."""
BASIC_PARAMETERS = (
    Free("body.inertia[*].yy", bounds=(1e-5, 1.0)),
    Free("body.com[link0].z", scale=0.1),
    Free("joint.placement[joint1].z", scale=0.1),
    Free("body.com[*].x", scale=0.001),
    Free("sensor.bias[phi1]", scale=0.001),
)
"""Parameters that are free in every fit."""
VISCOUS_FRICTION = (Free("joint.damping[*]", scale=1e-4),)
DRY_FRICTION = (
    Free("joint.friction[*]", scale=1e-4),
    Free("joint.friction_width[*]", bounds=(1e-3, 20.0), scale=0.1),
)
STRIBECK_FRICTION = (
    Free("joint.stribeck_friction[*]", scale=1e-4),
    Free("joint.stribeck_velocity[*]", bounds=(0.1, 100.0), scale=1.0),
)
AIR_DRAG = (
    Free("graft[0].quadratic", bounds=(0.0, None), scale=1e-3),
    Free("graft[1].quadratic", bounds=(0.0, None), scale=1e-3),
)
NETWORK = (Free("graft[2]", l2=1e-2),)


def _recordings() -> tuple[np.ndarray, np.ndarray]:
    return _read(recordings_folder("lab_double_pendulum") / "segments.npz")


@cache
def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as file:
        return file["states"], file["published"]


def load_runs(numbers) -> tuple[Run, ...]:
    """Load runs, with angles from straight down."""
    states, _ = _recordings()
    t = 1e-3 * np.arange(states.shape[1])[::SUBSAMPLING]
    return tuple(
        Run.from_arrays(f"run{k}", t, {f"phi{j + 1}": states[k, ::SUBSAMPLING, j] - np.pi for j in range(2)})
        for k in numbers
    )


def model(*, dry_friction: bool = False) -> Model:
    """Published model, optionally with small initial values of dry friction."""
    m1, m2, a1, a2, L1, I1, I2, k1, k2, g = _recordings()[1]
    pendulum = n_link_pendulum(2, lengths=[L1, ROD_2_LENGTH], masses=[m1, m2], inertias=[I1, I2], name="lab_pendulum")
    pendulum = eqx.tree_at(
        lambda m: (m.body.com, m.joint.damping, m.gravity),
        pendulum,
        (np.array([[0.0, 0.0, -a1], [0.0, 0.0, -a2]]), np.array([k1, k2]), np.array([0.0, 0.0, -g])),
    )
    if not dry_friction:
        return pendulum
    joint = pendulum.joint
    return eqx.tree_at(
        lambda m: (m.joint.friction, m.joint.friction_width, m.joint.stribeck_friction, m.joint.stribeck_velocity),
        pendulum,
        (
            np.full_like(joint.friction, 1e-4),
            np.full_like(joint.friction_width, 0.05),
            np.full_like(joint.stribeck_friction, 1e-4),
            np.full_like(joint.stribeck_velocity, 5.0),
        ),
    )


def grafts(*, network: bool) -> tuple[Graft, ...]:
    """Drag on both rods, and optionally a network for the remaining effects."""
    length = float(_recordings()[1][4])
    rods = tuple(
        Graft(f"body.external_wrench[{body}]", f"body.twist[{body}]", RodDrag((0, 0, 0), (0, 0, -L), quadratic=0.01))
        for body, L in (("link0", length), ("link1", ROD_2_LENGTH))
    )
    if not network:
        return rods
    net = MLP(4, 2, hidden=(8,), input_scale=[1.0, 1.0, 5.0, 5.0], output_scale=1e-4)
    return (*rods, Graft("joint.tau", ["joint.q", "joint.qd"], net))


def problem(
    free_parameters: tuple[Free, ...],
    *,
    dry_friction: bool = False,
    drag: bool = False,
    network: bool = False,
    train=None,
    held_out=HELD_OUT,
) -> FitProblem:
    """Fit problem with the given free parameters."""
    blueprint = Blueprint(*grafts(network=network)) if drag else Blueprint()
    sim = Simulator(model(dry_friction=dry_friction), blueprint=blueprint, dt=DT, integrator="rk4")
    setup = Setup(sim, Sensors.from_addresses(sim, CHANNELS))
    train = [k for k in range(len(_recordings()[0])) if k not in HELD_OUT] if train is None else train
    channel_roles = ChannelRoles(dict.fromkeys(CHANNELS, NOISE), {}, {})
    space = ParameterSpace(setup, free_parameters)
    return FitProblem(setup, space, channel_roles, load_runs(train), load_runs(held_out))


def _cases(smoke: bool) -> list[Case]:
    subset = {"train": (0, 12), "held_out": (1,)} if smoke else {}
    max_steps = 3 if smoke else 100
    stages = tuple(Stage(window=window, solver=LevenbergMarquardt(max_steps=max_steps)) for window in (0.5, 1.0))
    friction = (*BASIC_PARAMETERS, *VISCOUS_FRICTION, *DRY_FRICTION)
    friction_and_drag = (*friction, *STRIBECK_FRICTION, *AIR_DRAG)
    cases = [
        Case("published", "as published", lambda: problem(VISCOUS_FRICTION, **subset), ()),
        Case("viscous", "viscous friction", lambda: problem((*BASIC_PARAMETERS, *VISCOUS_FRICTION), **subset), stages),
        Case(
            "friction_and_drag",
            "+ Stribeck friction, drag",
            lambda: problem(friction_and_drag, dry_friction=True, drag=True, **subset),
            stages,
        ),
        Case(
            "network",
            "+ network, 58 weights",
            lambda: problem((*friction_and_drag, *NETWORK), dry_friction=True, drag=True, network=True, **subset),
            stages,
        ),
    ]
    if not smoke:
        cases.insert(2, Case("dry", "+ dry friction", lambda: problem(friction, dry_friction=True), stages))
    return cases


def _draw(results: Mapping[str, Any], folder: Path) -> None:
    title = "Lab double pendulum: error on held-out runs"
    draw_errors(results, folder / "errors.svg", title)


STUDY = Study(
    name="lab_pendulum",
    claim="Stribeck friction and air drag explain a real double pendulum; a network models the remaining effects.",
    source="lab_double_pendulum/segments.npz: dynamicslab/MultiArm-Pendulum, MIT licence",
    cases=_cases,
    score=lambda problem, theta: held_out_errors(problem, theta, windows=WINDOWS),
    metrics=lambda scores: error_metrics(scores, "worst"),
    goals=tuple(
        Goal(
            f"{case}, reconstructed over {window:g} s, {statistic} [mrad]",
            limit,
            f"{model}: RMS error, windows of {window:g} s, {statistic} [mrad]",
        )
        for case, model, limits in (
            ("friction_and_drag", "physics alone", ((0.32, 0.56), (0.45, 1.1))),
            ("network", "with a network", ((0.22, 0.4), (0.32, 0.8))),
        )
        for window, pair in zip(WINDOWS, limits, strict=True)
        for statistic, limit in zip(("median", "worst"), pair, strict=True)
    ),
    draw=_draw,
)
