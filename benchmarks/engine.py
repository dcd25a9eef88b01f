"""Engine benchmark: loading a model, compiling with XLA, and running, compared with MuJoCo and Pinocchio.

    python -m benchmarks.engine            a table
    python -m benchmarks.engine --json     the results as JSON

Times are the best of several repetitions on one thread. They depend on the machine: compare ratios.
"""

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

from hybridsim.core.errors import ModelWarning
from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.io.convert import convert
from hybridsim.io.load import load_model
from hybridsim.model.model import Model
from hybridsim.robots import quadruped
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator

STEPS = 100


def best(function: Callable, repetitions: int = 5) -> float:
    """Shortest time of several calls [s]."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def loading_times() -> dict:
    """Time to load the A1 quadruped's URDF from pybullet_data, if installed [s]."""
    try:
        import pybullet_data
    except ModuleNotFoundError:
        return {"a1.urdf": None}
    path = f"{pybullet_data.getDataPath()}/a1/a1.urdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        start = time.perf_counter()
        load_model(path, base="free")
        first = time.perf_counter() - start
        return {"a1.urdf, first": first, "a1.urdf, again": best(lambda: load_model(path, base="free"))}


def compile_staged(function: Callable, *arguments) -> tuple[dict, Callable]:
    """Times of the stages of compilation [s], and the compiled function."""
    jax.clear_caches()
    start = time.perf_counter()
    traced = jax.jit(function).trace(*arguments)
    after_trace = time.perf_counter()
    lowered = traced.lower()
    after_lowering = time.perf_counter()
    compiled = lowered.compile()
    end = time.perf_counter()
    stages = {
        "equations": _equations(traced.jaxpr.jaxpr),
        "trace": after_trace - start,
        "lower": after_lowering - after_trace,
        "xla": end - after_lowering,
        "total": end - start,
    }
    return stages, compiled


def _equations(jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        total += 1
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            total += _equations(inner) if hasattr(inner, "eqns") else 0
    return total


def compile_times(model: Model) -> dict:
    """Compile and run times of forward dynamics, of a rollout, and of its gradient with respect to the whole
    simulator."""
    sim = Simulator(model)
    state = sim.initial_state()
    tau = np.zeros(model.nv)

    def loss(sim, state):
        return jnp.sum(rollout(sim, state, steps=STEPS).q ** 2)

    report = {}
    stages, compiled = compile_staged(forward_dynamics, model, state.q, state.qd, tau)
    stages["run_per_call"] = best(lambda: jax.block_until_ready(compiled(model, state.q, state.qd, tau)), 200)
    report["forward dynamics"] = stages
    for name, function in (("rollout", loss), ("gradient", jax.grad(loss, argnums=(0, 1)))):
        stages, run = compile_staged(function, sim, state)
        stages["run_per_step"] = best(lambda run=run: jax.block_until_ready(run(sim, state)), 10) / STEPS
        report[f"{STEPS}-step {name}"] = stages
    return report


def peer_times(model: Model, folder) -> dict:
    """Forward dynamics of the same robot in MuJoCo and Pinocchio, one call [s]."""
    convert(model, folder / "robot.xml")
    convert(model, folder / "robot.urdf")
    mj = mujoco.MjModel.from_xml_path(str(folder / "robot.xml"))
    mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(mj)
    pm = pin.buildModelFromUrdf(str(folder / "robot.urdf"), pin.JointModelFreeFlyer())
    pd = pm.createData()
    q, v = pin.neutral(pm), np.zeros(pm.nv)

    def repeat(call):
        for _ in range(1000):
            call()

    return {
        "MuJoCo mj_forward": best(lambda: repeat(lambda: mujoco.mj_forward(mj, data))) / 1000,
        "Pinocchio aba (through Python)": best(lambda: repeat(lambda: pin.aba(pm, pd, q, v, v))) / 1000,
    }


def main() -> None:
    import tempfile
    from pathlib import Path

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    model = quadruped()
    with jax.enable_x64(True), tempfile.TemporaryDirectory() as folder:
        report = {
            "versions": {name: version(name) for name in ("jax", "mujoco", "pin")}
            | {"python": platform.python_version()},
            "loading [s]": loading_times(),
            "compiling the quadruped [s]": compile_times(model),
            "peers, forward dynamics [s]": peer_times(model, Path(folder)),
        }
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        for title, content in report.items():
            print(title)
            for name, value in content.items():
                if isinstance(value, dict):
                    value = "  ".join(f"{k} {_short(v)}" for k, v in value.items())
                print(f"  {name:32s} {_short(value)}")


def _short(value) -> str:
    if isinstance(value, float):
        return f"{value:.3g} s" if value >= 1e-3 else f"{1e6 * value:.3g} µs"
    return str(value)


if __name__ == "__main__":
    main()
