"""Structured networks compared with MLPs, over ten times the length of the training runs.

    python -m benchmarks.long_horizon                                        about two minutes
    python -m benchmarks.long_horizon --seeds 3 --json runs/long_horizon.json
    python -m benchmarks.long_horizon --figure docs/images/long_horizon.svg

Each model lacks one effect, which networks learn from the angles of eight runs of one second with 1 mrad of noise. The
angles of rollouts of ten seconds from held-out initial states are compared. All networks have one hidden layer of eight
units and are trained in the same stages. If the force depends on angles alone, one MLP has only angles as
inputs.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from rich.progress import track
from tests.support.discovery_cases import Spring, between

from benchmarks.report import console
from hybridsim.data.run import Run
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles
from hybridsim.model.model import Model
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum, n_link_pendulum
from hybridsim.sim.rollout import simulate
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft

DT, TRAINING_STEPS, HORIZON_RATIO, NOISE, RUNS, TESTS = 0.005, 200, 10, 1e-3, 8, 10
"""Time step [s], steps of a training run, length of predictions in training runs, noise [rad], training runs, test
runs."""
FAST = LevenbergMarquardt(max_steps=60)
STAGES = (Stage(window=0.25, solver=FAST), Stage(window=1.0, solver=FAST))
STATE = ["joint.q", "joint.qd"]


class Damping(eqx.Module):
    """Angle-dependent damping."""

    def __call__(self, x):
        return -jnp.stack([0.05 + 0.04 * jnp.cos(x[0]), 0.04 + 0.03 * jnp.sin(x[1])]) * x[2:]


class Springs(eqx.Module):
    """A hardening and a linear spring."""

    def __call__(self, q):
        return -jnp.stack([2.0 * jnp.sin(q[0]) + 3.0 * q[0] ** 3, 1.5 * q[1]])


class System(NamedTuple):
    """A mechanism, the missing effect, and networks by seed: MLPs, then a structured one."""

    model: Model
    missing: Graft
    networks: dict[str, Callable[[int], Graft]]
    max_angle: float
    """Largest initial angle [rad]."""


def mlp(size: int, output_scale: float, *, velocities: bool = True) -> Callable[[int], Graft]:
    """An MLP of angles and velocities, or of angles alone."""
    scale = [1.0] * size + [3.0] * size * velocities
    options = {"hidden": (8,), "input_scale": scale, "output_scale": output_scale}
    return lambda seed: Graft(
        "joint.tau", STATE if velocities else "joint.q", MLP(len(scale), size, seed=seed, **options)
    )


SYSTEMS = {
    "damping that depends on angles": lambda: System(
        double_pendulum(),
        Graft("joint.tau", STATE, Damping()),
        {
            "MLP": mlp(2, 1.0),
            "Dissipative": lambda seed: Graft("joint.tau", STATE, Dissipative(2, 2, hidden=(8,), seed=seed)),
        },
        0.8,
    ),
    "springs in the joints": lambda: System(
        double_pendulum(),
        Graft("joint.tau", "joint.q", Springs()),
        {
            "MLP": mlp(2, 3.0),
            "MLP of angles": mlp(2, 3.0, velocities=False),
            "Conservative": lambda seed: Graft(
                "joint.tau", "joint.q", Conservative(2, hidden=(8,), seed=seed, potential_scale=3.0)
            ),
        },
        0.8,
    ),
    "a spring between two links of three": lambda: System(
        n_link_pendulum(3, lengths=[0.5] * 3, masses=[0.5] * 3),
        between(0, 2, Spring),
        {
            "MLP": mlp(3, 3.0),
            "MLP of angles": mlp(3, 3.0, velocities=False),
            "InternalForce": lambda seed: between(0, 2, hidden=(8,), seed=seed, force_scale=10.0, distance_scale=0.5),
        },
        0.6,
    ),
}


def measure(name: str, seeds: int) -> dict:
    """Errors of the angles over time, for all networks, seeds and initial states [rad]."""
    system, rng = SYSTEMS[name](), np.random.default_rng(0)
    model = system.model
    true = Simulator(model, dt=DT, blueprint=Blueprint(system.missing))
    draws = [
        (rng.uniform(-system.max_angle, system.max_angle, model.nq), rng.normal(size=model.nv))
        for _ in range(RUNS + TESTS)
    ]
    channels = {f"q{k}": f"joint.q[{joint}]" for k, joint in enumerate(model.topology.coordinate_names)}
    runs = []
    for k, (q, qd) in enumerate(draws[:RUNS]):
        motion = simulate(true, true.initial_state(q, qd), steps=TRAINING_STEPS)
        measured = motion.q + NOISE * rng.standard_normal(motion.q.shape)
        runs.append(Run.from_arrays(f"run{k}", np.asarray(motion.t), dict(zip(channels, measured.T, strict=True))))
    truth = motions(true, draws[RUNS:])

    def train(graft: Graft) -> Simulator:
        sim = Simulator(model, dt=DT, blueprint=Blueprint(graft))
        setup = Setup(sim, Sensors.from_addresses(sim, channels))
        space = ParameterSpace(setup, [Free("graft[*]")])
        problem = FitProblem(setup, space, ChannelRoles(dict.fromkeys(channels, NOISE)), tuple(runs))
        return space.put(setup, solve(problem, STAGES).theta).sim

    errors = {"without a network": [motions(Simulator(model, dt=DT), draws[RUNS:]) - truth]}
    for kind, network in system.networks.items():
        errors[kind] = [
            motions(train(network(seed)), draws[RUNS:]) - truth for seed in track(range(seeds), f"{name}, {kind}")
        ]
    return {kind: np.sqrt(np.mean(np.square(samples), axis=-1)) for kind, samples in errors.items()}


def motions(sim: Simulator, starts: list) -> np.ndarray:
    """Angles (run, step, joint)."""
    return np.stack(
        [simulate(sim, sim.initial_state(q, qd), steps=HORIZON_RATIO * TRAINING_STEPS).q for q, qd in starts]
    )


def summary(errors: np.ndarray) -> dict[str, float]:
    """Median over runs and seeds of the RMS error, over the training length and ten times that [rad]."""
    with np.errstate(invalid="ignore"):
        return {
            str(times): float(
                np.median(np.sqrt(np.mean(np.square(errors[..., : times * TRAINING_STEPS + 1]), axis=-1)))
            )
            for times in (1, HORIZON_RATIO)
        }


def draw(file: Path, results: dict[str, dict]) -> None:
    """Draw errors over time, medians over runs and seeds."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    colours = {"without a network": "#9aa5b1", "MLP": "#c9631f", "MLP of angles": "#e0a458"}
    figure, axes = plt.subplots(1, len(results), figsize=(4.2 * len(results), 3.4), sharey=True, layout="constrained")
    for axis, (name, by_kind) in zip(axes, results.items(), strict=True):
        for kind, errors in by_kind.items():
            middle = 1e3 * np.median(errors, axis=(0, 1))
            t = DT * np.arange(len(middle))
            # averaged over half a second, as errors of oscillations cross zero
            smooth = np.sqrt(np.convolve(np.square(middle), np.ones(100) / 100, mode="valid"))
            axis.plot(t[99::10], smooth[::10], label=kind, color=colours.get(kind, "#2f6f9f"), lw=1.8)
        axis.axvspan(0.0, DT * TRAINING_STEPS, color="#e8f0f6", zorder=0)
        axis.set(title=name, xlabel="time [s]", yscale="log", xlim=(0.0, t[-1]), ylim=(0.008, 1e3))
        axis.legend(frameon=False, fontsize=9, loc="lower right")
    axes[0].set_ylabel("error of the angles [mrad]")
    axes[0].text(0.5 * DT * TRAINING_STEPS, 0.011, "training", rotation=90, ha="center", va="bottom", color="#52606d")
    figure.savefig(file, metadata={"Date": None})
    console.print(f"written: {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="output file of the results")
    parser.add_argument("--figure", type=Path, help="output file of the figure of errors over time")
    options = parser.parse_args()
    results = {name: measure(name, options.seeds) for name in SYSTEMS}
    console.print("median error of angles in mrad: over the training length | ten times that")
    summaries = {name: {kind: summary(errors) for kind, errors in by_kind.items()} for name, by_kind in results.items()}
    for name, by_kind in summaries.items():
        for kind, errors in by_kind.items():
            console.print(f"{name} | {kind} | {1e3 * errors['1']:.3g} | {1e3 * errors[str(HORIZON_RATIO)]:.3g}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(summaries, indent=1) + "\n")
    if options.figure:
        draw(options.figure, results)


if __name__ == "__main__":
    main()
