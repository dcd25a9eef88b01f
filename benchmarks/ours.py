"""hybridsim itself on the workloads of the gradient benchmark, by native code and by XLA.

    python -m benchmarks.ours            a table
    python -m benchmarks.ours W1 --json  one workload, for other programs

Native figures are those of one call with arrays ready, on one thread. A gradient is with respect to the workload's
parameters, the starting state and the torque at every step; its answers are checked against the workload's references.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.peers.measure import Row, best, check_motion, needs, one_thread, row
from benchmarks.peers.workloads import CHAIN_LENGTHS, W1, W2, W3, Workload, chain, mjcf, random_states, starts

BATCH = 1024
BATCH_STEPS = 500
"""Steps of a batch, where the workload has more: per step and trajectory nothing changes after that."""


def simulator(w: Workload):
    """The workload as a simulator, with a motor at every hinge, and how its parameters are put in."""
    import equinox as eqx
    import jax.numpy as jnp

    from hybridsim import Simulator, load_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(mjcf(w, motors=True))
        sim = Simulator(load_model(path), dt=w.dt)

    def with_parameters(sim, parameters):
        bodies = w.bodies([parameters[k] for k in range(len(w.parameters))])
        nothing = jnp.zeros(3)
        table = {
            "mass": jnp.stack([jnp.asarray(b.mass) for b in bodies]),
            "com": jnp.stack([jnp.stack([jnp.asarray(x, float) for x in b.centre]) for b in bodies]),
            "inertia": jnp.stack([jnp.concatenate([jnp.stack(list(b.inertia)), nothing]) for b in bodies]),
            "place": jnp.stack([jnp.stack([jnp.asarray(x, float) for x in b.position]) for b in bodies]),
        }
        where = lambda s: (s.model.body.mass, s.model.body.com, s.model.body.inertia, s.model.joint.placement.p)  # noqa: E731
        return eqx.tree_at(where, sim, tuple(table.values()))

    return sim, with_parameters


def step_of(w: Workload) -> tuple[Callable, tuple]:
    """A step with its loss, and examples of its arguments: fixed, free, state, torques."""
    import equinox as eqx
    import jax.numpy as jnp
    import numpy as np

    from hybridsim.sim.integrate import next_state
    from hybridsim.sim.state import Inputs, State

    sim, with_parameters = simulator(w)
    start = sim.initial_state(w.q0)
    fixed, static = eqx.partition(sim, eqx.is_array_like)

    def step(fixed, free, carry, torques):
        state = State(*carry, np.zeros(()), start.aux)
        new = next_state(with_parameters(eqx.combine(fixed, static), free), state, Inputs(torques))
        return (new.q, new.qd), jnp.sum(new.q**2)

    return step, (fixed, w.parameters, (start.q, start.qd), np.zeros(sim.model.nu))


def rollouts(w: Workload) -> list[Row]:
    """Forward and gradient of one trajectory and of a batch, by native code."""
    import jax
    import numpy as np

    from hybridsim.native.rollout import Rollout

    version = needs("jax", "llvmlite")
    step, examples = step_of(w)
    os.environ["HYBRIDSIM_CACHE"] = tempfile.mkdtemp()
    rows = []

    def prepared():
        return Rollout(step, *examples, outputs=np.zeros(()), key=w.title)

    rollout = prepared()
    forms = rollout.forms
    fixed, free = forms.fixed.pack(examples[0]), forms.free.pack(examples[1])
    ct_end, ct_loss = np.zeros((1, forms.carry.size)), np.ones((1, 1, 1))
    for batch, steps in ((1, w.steps), (BATCH, min(w.steps, BATCH_STEPS))):
        state = np.hstack([starts(w, batch), np.zeros((batch, w.nv))])
        torques = np.zeros((1, steps, forms.inputs.size))
        everything = np.eye(forms.free.size + forms.carry.size)[None]
        given = (fixed, free, state, torques)
        calls = {
            "forward": lambda r: r.bind_forward(*given),  # noqa: B023
            "gradient": lambda r: r.bind_gradient(*given, ct_end, ct_loss),  # noqa: B023
            "sensitivities": lambda r: r.bind_tangents(
                *given,  # noqa: B023
                everything[..., : forms.free.size],  # noqa: B023
                everything[..., forms.free.size :],  # noqa: B023
            ),
        }
        for what, bind in calls.items():
            if what == "sensitivities" and batch > 1 and w.nv > 5:
                continue
            start = time.process_time()
            call = bind(rollout)
            result = call()
            cold = time.process_time() - start
            start = time.process_time()
            bind(prepared())()
            cached = time.process_time() - start
            note = f"{steps} steps, from the cache in {cached:.2f} s"
            if what == "gradient":
                nq = w.nq
                answers = {"parameters": result.free[0], "q0": result.start[0, :nq]}
                found = check_motion(w, steps, loss=result.outputs[0].sum(), **answers) if not w.is_free else ""
                note += f"; {found}"
            timing = best(call, budget=1.0)
            rows.append(
                row(
                    "hybridsim native",
                    version,
                    w.name,
                    what,
                    timing,
                    batch=batch,
                    steps=steps,
                    compile_s=cold,
                    note=note,
                )
            )
    jax.clear_caches()
    return rows


def dynamics(w: Workload) -> list[Row]:
    """Forward dynamics alone and its transposed derivative, one call, by native code."""
    import jax
    import numpy as np

    from hybridsim import forward_dynamics
    from hybridsim.native.rollout import Rollout

    version = needs("jax", "llvmlite")
    sim, with_parameters = simulator(w)
    repeats = max(20000 // w.nv, 50)

    import equinox as eqx

    fixed, static = eqx.partition(sim, eqx.is_array_like)

    def value(fixed, free, carry, inputs):
        model = with_parameters(eqx.combine(fixed, static), free).model
        return carry, forward_dynamics(model, *inputs)

    def vjp(fixed, free, carry, inputs):
        *state, weights = inputs

        def function(free, *state):
            return value(fixed, free, carry, state)[1]

        return carry, jax.vjp(function, free, *state)[1](weights)

    q, qd, tau = (x[0] for x in random_states(w, 1))
    rows = []
    for what, function, inputs in (("value", value, (q, qd, tau)), ("vjp", vjp, (q, qd, tau, tau))):
        start = time.process_time()
        rollout = Rollout(function, fixed, w.parameters, None, inputs)
        forms = rollout.forms
        cells = np.repeat(forms.inputs.pack(inputs)[None, None], repeats, axis=1)
        arguments = (forms.fixed.pack(fixed), forms.free.pack(w.parameters), np.zeros((1, 0)), cells)
        call = rollout.bind_forward(*arguments)
        call()
        cold = time.process_time() - start
        timing = best(call, budget=1.0)
        label = f"{what} of forward dynamics"
        rows.append(row("hybridsim native", version, w.title, label, timing, steps=repeats, compile_s=cold))
    return rows


MEASURES = {
    "W1": lambda: rollouts(W1),
    "W2": lambda: rollouts(W2),
    "W3": lambda: [*rollouts(W3), *dynamics(W3)],
    "W4": lambda: [r for n in CHAIN_LENGTHS for r in dynamics(chain(n))],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=list(MEASURES), help="W1, W2, W3, W4; all by default")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    one_thread()
    import jax

    jax.config.update("jax_enable_x64", True)
    found = []
    for name in arguments.workloads:
        for r in MEASURES[name]():
            found.append(r)
            if not arguments.json:
                compiled = "" if r.compile_s is None else f"compile {r.compile_s:6.2f} s"
                print(
                    f"{r.workload:18} {r.what:28} ×{r.batch:<5} {r.per_step_ns:10.1f} ns  {compiled}  {r.note}",
                    flush=True,
                )
    if arguments.json:
        print(json.dumps([asdict(r) for r in found], indent=1))


if __name__ == "__main__":
    main()
