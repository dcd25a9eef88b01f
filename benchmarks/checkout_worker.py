"""Worker of `benchmarks.compare_checkouts`: runs one task with the hybridsim on `PYTHONPATH` and prints JSON.

Tasks run in both checkouts, so names that differ between them are looked up under both names.
"""

import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import jax
import numpy as np

CHECKOUT = Path(os.environ.get("HYBRIDSIM_CHECKOUT", "."))
SECONDS = 1.0
"""Duration over which a timed function is repeated [s]; the fastest call counts."""

Bits = dict[str, str]
Run = Callable[[], Any]


def lookup(*names: str) -> Any:
    """The first of these `module:attribute` names that exists in this checkout."""
    for name in names:
        module, _, attribute = name.partition(":")
        try:
            return getattr(importlib.import_module(f"hybridsim.{module}".rstrip(".")), attribute)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"this checkout has none of {', '.join(names)}")


def robot(name: str) -> Any:
    return lookup(f"robots:{name}", f"models:{name}")


def digest(tree: Any) -> str:
    """Hash of every bit of every array of a pytree."""
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        array = np.ascontiguousarray(leaf)
        total.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return total.hexdigest()


def five_links() -> Any:
    """A chain of rods with one sphere each, swinging onto a floor."""
    import hybridsim as hs

    builder, parent = hs.ModelBuilder("five links"), "world"
    for k in range(5):
        at = (0.0, 0.0, 2.0 if k == 0 else -1.0)
        joint = {"joint": f"joint{k}", "kind": "revolute", "axis": (0, 1, 0), "at": at}
        builder.add_body(
            f"link{k}", parent=parent, mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.08, 0.08, 0.002), **joint
        )
        builder.add_geom(f"link{k}", "sphere", (0.15,), at=(0.0, 0.0, -0.5))
        parent = f"link{k}"
    return hs.with_floor(builder.build())


def simulation(name: str) -> tuple[Any, Any, int]:
    """Simulator, initial state and number of steps."""
    import hybridsim as hs

    if name == "double pendulum":
        sim = hs.Simulator(robot("double_pendulum")(damping=0.02), dt=0.005)
        return sim, sim.initial_state([1.0, 0.5]), 1000
    if name.startswith("five links"):
        sim = hs.Simulator(five_links(), dt=0.002, contact=name.rpartition(" ")[2])
        return sim, sim.initial_state(np.linspace(0.6, -0.3, 5)), 400
    if name == "quadruped with contact":
        sim = hs.Simulator(hs.with_floor(robot("quadruped")()), dt=0.002, contact="impulse")
    else:
        sim = hs.Simulator(robot("quadruped")(), dt=0.002)
    return sim, sim.initial_state(), 100


def rollout_gradient(name: str) -> Run:
    """Gradient of a cost of the final state with respect to every parameter and the initial state, under `jit`."""
    import equinox as eqx

    import hybridsim as hs

    sim, state, steps = simulation(name)

    def cost(arguments):
        sim, q, qd = arguments
        final = hs.rollout(sim, eqx.tree_at(lambda s: (s.q, s.qd), state, (q, qd)), steps=steps).final
        return final.q @ final.q + 0.1 * (final.qd @ final.qd)

    gradient = eqx.filter_jit(eqx.filter_grad(cost))
    return lambda: jax.block_until_ready(gradient((sim, np.asarray(state.q), np.asarray(state.qd))))


def rollout_bits(name: str) -> Bits:
    """Trajectory and gradient of a rollout."""
    import hybridsim as hs

    sim, state, steps = simulation(name)
    trajectory = hs.simulate(sim, state, steps=steps)
    return {
        "trajectory": digest((trajectory.q, trajectory.qd, trajectory.t)),
        "gradient": digest(rollout_gradient(name)()),
    }


def demo_fit(name: str) -> Run:
    """Fit of one of the demo projects, ready to run."""
    build = lookup("project.build.build:build", "project.build:build")
    load_project = lookup("project.schema.load:load_project", "project.load:load_project")
    fit, folder = lookup("identify.solve:solve", ":fit"), Path(tempfile.mkdtemp(prefix="hybridsim-demo-"))
    try:
        for path in (CHECKOUT / "src/hybridsim/demo").iterdir():
            if path.suffix in (".csv", ".toml", ".xml"):
                shutil.copyfile(path, folder / path.name)
        built = build(load_project(folder / f"{name}.toml"))
    finally:
        shutil.rmtree(folder)
    return lambda: fit(built.problem, built.stages)


def fit_bits(name: str) -> Bits:
    """Estimate and cost history of a fit."""
    result = demo_fit(name)()
    return {"theta": digest(result.theta), "costs": digest(list(result.costs))}


def discovery_bits() -> Bits:
    """Final estimate of discovery for a double pendulum with unmodelled damping."""
    paths = (CHECKOUT / "tests/support/discovery_cases.py", CHECKOUT / "benchmarks/discovery_cases.py")
    spec = importlib.util.spec_from_file_location("discovery_cases", next(path for path in paths if path.exists()))
    assert spec is not None and spec.loader is not None
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    case = cases.CASES["damping of both joints"]
    result = lookup("identify.discover:discover", ":discover")(
        case.problem(1e-3), case.stage, seeds=range(1), warm_up=case.warm_up
    )
    best = getattr(result, "seed_results", getattr(result, "seeds", ()))[0].best
    return {"inputs": str(len(best.support)), "theta": digest(best.theta)}


ROLLOUTS = ("double pendulum", "five links impulse", "five links compliant", "quadruped", "quadruped with contact")
BITS: dict[str, Callable[[], Bits]] = {
    **{name: (lambda name=name: rollout_bits(name)) for name in ROLLOUTS},
    "demo parameters": lambda: fit_bits("parameters"),
    "demo networks": lambda: fit_bits("networks"),
    "discovery": discovery_bits,
}
TIMES: dict[str, Callable[[], Run]] = {
    "double pendulum": lambda: rollout_gradient("double pendulum"),
    "quadruped with contact": lambda: rollout_gradient("quadruped with contact"),
    "demo parameters": lambda: demo_fit("parameters"),
}
COMPILE = "compile time"
"""CPU time from a simulator to the first gradient of the quadruped with contact, with an empty cache."""


def seconds(run: Run) -> float:
    """Time of the fastest call."""
    run()
    times, end = [], perf_counter() + SECONDS
    while len(times) < 3 or perf_counter() < end:
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def compile_seconds() -> float:
    import hybridsim as hs

    with tempfile.TemporaryDirectory(prefix="hybridsim-cache-") as folder:
        os.environ["HYBRIDSIM_CACHE"] = folder
        hs.simulate(*simulation("double pendulum")[:2], steps=1)  # imports and initializes the compiler
        start = process_time()
        rollout_gradient("quadruped with contact")()
        return process_time() - start


def main(what: str, task: str) -> None:
    jax.config.update("jax_enable_x64", True)
    if what == "bits":
        print(json.dumps(BITS[task]()))
    else:
        print(json.dumps(compile_seconds() if task == COMPILE else seconds(TIMES[task]())))


if __name__ == "__main__":
    main(*sys.argv[1:])
