"""Networks with a structure against perceptrons, over ten times the time that they were trained on.

    python -m benchmarks.long_horizon                                        about two minutes
    python -m benchmarks.long_horizon --seeds 3 --json runs/long_horizon.json
    python -m benchmarks.long_horizon --figure docs/images/long_horizon.svg

Mechanisms miss something; networks learn it from angles of eight runs of one second, with 1 mrad of noise. What is
compared is the angles of motions of ten seconds from starts that no fit has seen. All networks have one hidden layer of
eight units and are given the same stages. Where forces depend on angles alone, there is a perceptron that knows.
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
from hybridsim.data.recording import Recording
from hybridsim.identify.fit import fit
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.windows import Measurements
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

DT, TRAINED, TIMES, NOISE, RUNS, TESTS = 0.005, 200, 10, 1e-3, 8, 10
"""Time step [s], steps of a run, how often that is predicted, noise [rad], runs, and starts to predict from."""
FAST = LevenbergMarquardt(max_steps=60)
STAGES = (Stage(window=0.25, solver=FAST), Stage(window=1.0, solver=FAST))
STATE = ["joint.q", "joint.qd"]


class Damping(eqx.Module):
    """That depends on the angles."""

    def __call__(self, x):
        return -jnp.stack([0.05 + 0.04 * jnp.cos(x[0]), 0.04 + 0.03 * jnp.sin(x[1])]) * x[2:]


class Springs(eqx.Module):
    """One that hardens, and one that does not."""

    def __call__(self, q):
        return -jnp.stack([2.0 * jnp.sin(q[0]) + 3.0 * q[0] ** 3, 1.5 * q[1]])


class System(NamedTuple):
    """A mechanism, what it misses, and networks by their seeds: perceptrons, then one with a structure."""

    model: Model
    missing: Graft
    networks: dict[str, Callable[[int], Graft]]
    reach: float
    """Largest angle at a start [rad]."""


def perceptron(size: int, output_scale: float, *, moving: bool = True) -> Callable[[int], Graft]:
    """One that reads angles and velocities, or angles alone."""
    scale = [1.0] * size + [3.0] * size * moving
    made = {"hidden": (8,), "input_scale": scale, "output_scale": output_scale}
    return lambda seed: Graft("joint.tau", STATE if moving else "joint.q", MLP(len(scale), size, seed=seed, **made))


SYSTEMS = {
    "damping that depends on angles": lambda: System(
        double_pendulum(),
        Graft("joint.tau", STATE, Damping()),
        {
            "MLP": perceptron(2, 1.0),
            "Dissipative": lambda seed: Graft("joint.tau", STATE, Dissipative(2, 2, hidden=(8,), seed=seed)),
        },
        0.8,
    ),
    "springs in the joints": lambda: System(
        double_pendulum(),
        Graft("joint.tau", "joint.q", Springs()),
        {
            "MLP": perceptron(2, 3.0),
            "MLP of angles": perceptron(2, 3.0, moving=False),
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
            "MLP": perceptron(3, 3.0),
            "MLP of angles": perceptron(3, 3.0, moving=False),
            "InternalForce": lambda seed: between(0, 2, hidden=(8,), seed=seed, force_scale=10.0, distance_scale=0.5),
        },
        0.6,
    ),
}


def measured(name: str, seeds: int) -> dict:
    """Errors of the angles over time of all networks, seeds and starts [rad]."""
    system, rng = SYSTEMS[name](), np.random.default_rng(0)
    model = system.model
    true = Simulator(model, dt=DT, blueprint=Blueprint(system.missing))
    draws = [
        (rng.uniform(-system.reach, system.reach, model.nq), rng.normal(size=model.nv)) for _ in range(RUNS + TESTS)
    ]
    channels = {f"q{k}": f"joint.q[{joint}]" for k, joint in enumerate(model.topology.coordinate_names)}
    runs = []
    for k, (q, qd) in enumerate(draws[:RUNS]):
        motion = simulate(true, true.initial_state(q, qd), steps=TRAINED)
        seen = motion.q + NOISE * rng.standard_normal(motion.q.shape)
        runs.append(Recording.from_arrays(f"run{k}", np.asarray(motion.t), dict(zip(channels, seen.T, strict=True))))
    truth = motions(true, draws[RUNS:])

    def fitted(graft: Graft) -> Simulator:
        sim = Simulator(model, dt=DT, blueprint=Blueprint(graft))
        setup = Setup(sim, Sensors.of(sim, channels))
        space = ParameterSpace(setup, [Free("graft[*]")])
        problem = FitProblem(setup, space, Measurements(dict.fromkeys(channels, NOISE)), tuple(runs))
        return space.put(setup, fit(problem, STAGES).theta).sim

    errors = {"without a network": [motions(Simulator(model, dt=DT), draws[RUNS:]) - truth]}
    for kind, made in system.networks.items():
        errors[kind] = [
            motions(fitted(made(seed)), draws[RUNS:]) - truth for seed in track(range(seeds), f"{name}, {kind}")
        ]
    return {kind: np.sqrt(np.mean(np.square(found), axis=-1)) for kind, found in errors.items()}


def motions(sim: Simulator, starts: list) -> np.ndarray:
    """Angles of (start, step, joint)."""
    return np.stack([simulate(sim, sim.initial_state(q, qd), steps=TIMES * TRAINED).q for q, qd in starts])


def summary(errors: np.ndarray) -> dict[str, float]:
    """Median over starts and seeds of the root mean square over time: as long as trained, and ten times that [rad]."""
    with np.errstate(invalid="ignore"):
        return {
            str(times): float(np.median(np.sqrt(np.mean(np.square(errors[..., : times * TRAINED + 1]), axis=-1))))
            for times in (1, TIMES)
        }


def draw(file: Path, found: dict[str, dict]) -> None:
    """Errors over time, medians over starts and seeds."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    colours = {"without a network": "#9aa5b1", "MLP": "#c9631f", "MLP of angles": "#e0a458"}
    figure, axes = plt.subplots(1, len(found), figsize=(4.2 * len(found), 3.4), sharey=True, layout="constrained")
    for axis, (name, by_kind) in zip(axes, found.items(), strict=True):
        for kind, errors in by_kind.items():
            middle = 1e3 * np.median(errors, axis=(0, 1))
            t = DT * np.arange(len(middle))
            # half a second each, because errors of swings go through zero
            smooth = np.sqrt(np.convolve(np.square(middle), np.ones(100) / 100, mode="valid"))
            axis.plot(t[99::10], smooth[::10], label=kind, color=colours.get(kind, "#2f6f9f"), lw=1.8)
        axis.axvspan(0.0, DT * TRAINED, color="#e8f0f6", zorder=0)
        axis.set(title=name, xlabel="time [s]", yscale="log", xlim=(0.0, t[-1]), ylim=(0.008, 1e3))
        axis.legend(frameon=False, fontsize=9, loc="lower right")
    axes[0].set_ylabel("error of the angles [mrad]")
    axes[0].text(0.5 * DT * TRAINED, 0.011, "trained", rotation=90, ha="center", va="bottom", color="#52606d")
    figure.savefig(file, metadata={"Date": None})
    console.print(f"written: {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--figure", type=Path, help="file for a picture of errors over time")
    options = parser.parse_args()
    found = {name: measured(name, options.seeds) for name in SYSTEMS}
    console.print("error of angles in mrad, median: as long as trained | ten times that")
    told = {name: {kind: summary(errors) for kind, errors in by_kind.items()} for name, by_kind in found.items()}
    for name, by_kind in told.items():
        for kind, errors in by_kind.items():
            console.print(f"{name} | {kind} | {1e3 * errors['1']:.3g} | {1e3 * errors[str(TIMES)]:.3g}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    if options.figure:
        draw(options.figure, found)


if __name__ == "__main__":
    main()
