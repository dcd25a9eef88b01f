"""Brax, generalized pipeline, with contact: differentiated by JAX, in float64 on one core."""

from benchmarks.contact_workloads import CUBE, FIVE_LINKS, QUADRUPED
from benchmarks.measure import FASTER_XLA, Row, command_line, require, use_one_thread
from benchmarks.workloads import Workload, mjcf

PEER = "Brax"


def measure(w: Workload, plans: dict[int, tuple[int | None, int | None]]) -> list[Row]:
    """Rollouts and gradients; plans are numbers of steps of both by batch size."""
    version = require("brax", "jax")
    import jax.numpy as jnp
    from brax.generalized import pipeline
    from brax.io import mjcf as brax_mjcf

    from benchmarks.peers import jax_contact, jax_rollouts

    system = brax_mjcf.loads(mjcf(w, motors=True))

    def with_parameters(parameters):
        if not len(w.parameters):
            return system
        bodies = w.bodies(parameters)
        fields = {
            "link.inertia.mass": jax_rollouts.stack(bodies, "mass"),
            "link.inertia.transform.pos": jax_rollouts.stack(bodies, "centre"),
            "link.transform.pos": jax_rollouts.stack(bodies, "position"),
        }
        shapes = [shape for b in bodies for shape in b.shapes]
        positions = jnp.stack([jnp.stack([jnp.asarray(x, float) for x in shape.position]) for shape in shapes])
        return system.tree_replace(fields).replace(geom_pos=jnp.asarray(system.geom_pos).at[1:].set(positions))

    def simulator(parameters, q0, qd0):
        with_values = with_parameters(parameters)

        def step(state, torques):
            state = pipeline.step(with_values, state, torques)
            return state, state.q

        return pipeline.init(with_values, q0, qd0), step

    named_plans = {batch: jax_contact.Plan(*plan) for batch, plan in plans.items()}
    return jax_contact.measure(PEER, version, w, simulator, named_plans)


PARTS = {
    FIVE_LINKS.name: lambda: measure(FIVE_LINKS, {1: (500, 200), 64: (50, None)}),
    CUBE.name: lambda: measure(CUBE, {1: (200, 50), 64: (50, None)}),
    QUADRUPED.name: lambda: measure(QUADRUPED, {1: (50, 50), 64: (50, 10), 1024: (10, None)}),
}

if __name__ == "__main__":
    use_one_thread(FASTER_XLA)
    command_line(__doc__, "benchmarks.peers.brax_contact", PARTS)
