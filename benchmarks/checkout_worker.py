"""One checkout's part of `benchmarks.compare_checkouts`: runs a task with the hybridsim on `PYTHONPATH`, prints JSON.

The task is written once and must run in both checkouts, so names that differ between them are looked up under both.
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

jax.config.update("jax_enable_x64", True)

CHECKOUT = Path(os.environ["HYBRIDSIM_CHECKOUT"])


def first(*names: str) -> Any:
    """The first of several `module:attribute` names that exists."""
    for name in names:
        module, _, attribute = name.partition(":")
        try:
            found = importlib.import_module(f"hybridsim.{module}" if module else "hybridsim")
            return getattr(found, attribute)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {', '.join(names)}")


def digest(tree: Any) -> str:
    """Hash of every bit of every array of a pytree."""
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        array = np.ascontiguousarray(leaf)
        total.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return total.hexdigest()


def robot(name: str) -> Any:
    return first(f"robots:{name}", f"models:{name}")


def spheres_on_links(links: int) -> Any:
    """A chain of rods with a sphere on each, swinging onto a floor."""
    import hybridsim as hs

    model = robot("n_link_pendulum")(links)
    builder = hs.ModelBuilder("spheres on links")
    parent = "world"
    for k in range(links):
        at = (0.0, 0.0, 2.0) if k == 0 else (0.0, 0.0, -1.0)
        com, inertia = model.body.com[k], model.body.inertia[k]
        builder.add_body(
            f"link{k}", parent, f"joint{k}", "revolute", at=at, axis=(0, 1, 0), mass=1.0, com=com, inertia=inertia
        )
        builder.add_geom(f"link{k}", "sphere", (0.15,), at=(0.0, 0.0, -0.5))
        parent = f"link{k}"
    return hs.with_floor(builder.build())


def simulator(name: str) -> tuple[Any, Any, int]:
    """Simulator, initial state and number of steps of a task."""
    import hybridsim as hs

    if name == "double pendulum":
        sim = hs.Simulator(robot("double_pendulum")(damping=0.02), dt=0.005)
        return sim, sim.initial_state([1.0, 0.5]), 500
    if name.startswith("five links"):
        contact = name.rpartition(" ")[2]
        sim = hs.Simulator(spheres_on_links(5), dt=0.002, contact=contact)
        return sim, sim.initial_state(np.linspace(0.6, -0.3, 5)), 300
    contact = "impulse" if name == "quadruped on its feet" else "none"
    model = robot("quadruped")()
    sim = hs.Simulator(hs.with_floor(model) if contact == "impulse" else model, dt=0.002, contact=contact)
    return sim, sim.initial_state(), 100


def rollouts(name: str) -> Callable[[], dict[str, str]]:
    """Trajectory and reverse-mode gradient with respect to every parameter and the initial state."""
    import equinox as eqx

    import hybridsim as hs

    sim, state, steps = simulator(name)

    def objective(arguments):
        sim, q, qd = arguments
        final = hs.rollout(sim, eqx.tree_at(lambda s: (s.q, s.qd), state, (q, qd)), steps=steps).final
        return (final.q @ final.q) + 0.1 * (final.qd @ final.qd)

    gradient = eqx.filter_grad(objective)

    def run():
        trajectory = hs.simulate(sim, state, steps=steps)
        return {
            "trajectory": digest((trajectory.q, trajectory.qd, trajectory.t)),
            "gradient": digest(gradient((sim, np.asarray(state.q), np.asarray(state.qd)))),
        }

    return run


def demo_fit(name: str) -> Callable[[], dict[str, str]]:
    """θ after a fit of one of the demonstration's projects."""
    build = first("project.build.build:build", "project.build:build")
    load_project = first("project.schema.load:load_project", "project.load:load_project")
    fit = first(":fit")
    source = CHECKOUT / "src/hybridsim/demo"
    folder = Path(tempfile.mkdtemp(prefix="hybridsim-demo-"))
    for path in source.iterdir():
        if path.suffix in (".csv", ".toml", ".xml"):
            shutil.copyfile(path, folder / path.name)
    built = build(load_project(folder / f"{name}.toml"))
    shutil.rmtree(folder)

    def run():
        result = fit(built.problem, built.stages)
        return {"theta": digest(result.theta), "costs": digest(list(result.costs))}

    return run


def discovery() -> Callable[[], dict[str, str]]:
    """Inputs and θ that discovery ends with, for a double pendulum with unmodelled damping."""
    paths = (CHECKOUT / "tests/support/discovery_cases.py", CHECKOUT / "benchmarks/discovery_cases.py")
    spec = importlib.util.spec_from_file_location("discovery_cases", next(path for path in paths if path.exists()))
    assert spec is not None and spec.loader is not None
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    case, discover = cases.CASES["damping of both joints"], first(":discover")

    def run():
        result = discover(case.problem(1e-3), case.stage, seeds=range(1), warm_up=case.warm_up)
        best = result.seeds[0].best
        return {"support": digest([(c[0], c[1]) for c in sorted(_pairs(best.support))]), "theta": digest(best.theta)}

    return run


def _pairs(support: Any) -> list[tuple[int, int]]:
    """Graft and input of every chosen input, whatever the fields are called."""
    values = [[v for v in vars(one).values() if isinstance(v, int)] for one in support]
    return [(first, second) for first, second, *_ in values]


ROLLOUTS = (
    "double pendulum",
    "five links impulse",
    "five links compliant",
    "quadruped in the air",
    "quadruped on its feet",
)
TASKS: dict[str, Callable[[], Callable[[], dict[str, str]]]] = {
    **{name: (lambda name=name: rollouts(name)) for name in ROLLOUTS},
    "demo parameters": lambda: demo_fit("parameters"),
    "demo networks": lambda: demo_fit("networks"),
    "discovery": discovery,
}


def main(task: str) -> None:
    begin, begin_cpu = perf_counter(), process_time()
    run = TASKS[task]()
    bits = run()
    cold, cold_cpu = perf_counter() - begin, process_time() - begin_cpu
    times = []
    if task != "discovery":
        deadline = perf_counter() + 2.0
        while len(times) < 5 or (perf_counter() < deadline and len(times) < 200):
            start = perf_counter()
            run()
            times.append(perf_counter() - start)
    print(json.dumps({"bits": bits, "cold_s": cold, "cold_cpu_s": cold_cpu, "warm_s": min(times, default=cold)}))


if __name__ == "__main__":
    main(sys.argv[1])
