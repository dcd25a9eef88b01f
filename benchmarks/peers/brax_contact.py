"""Brax, generalized pipeline, on mechanisms that touch the ground: differentiated by JAX, in float64 on one core."""

from benchmarks.contact_workloads import CUBE, FIVE_LINKS, QUADRUPED
from benchmarks.measure import FASTER_XLA, Row, command_line, needs, one_thread
from benchmarks.workloads import Workload, mjcf

PEER = "Brax"


def measure(w: Workload, plans: dict[int, tuple[int | None, int | None]]) -> list[Row]:
    """Motions and gradients; plans are steps of both by the size of the batch."""
    version = needs("brax", "jax")
    import jax.numpy as jnp
    from brax.generalized import pipeline
    from brax.io import mjcf as brax_mjcf

    from benchmarks.peers import jax_contact, jax_rollouts

    system = brax_mjcf.loads(mjcf(w, motors=True))

    def with_parameters(parameters):
        if not len(w.parameters):
            return system
        bodies = w.bodies(parameters)
        changed = {
            "link.inertia.mass": jax_rollouts.stacked(bodies, "mass"),
            "link.inertia.transform.pos": jax_rollouts.stacked(bodies, "centre"),
            "link.transform.pos": jax_rollouts.stacked(bodies, "position"),
        }
        shapes = [shape for b in bodies for shape in b.shapes]
        places = jnp.stack([jnp.stack([jnp.asarray(x, float) for x in shape.position]) for shape in shapes])
        return system.tree_replace(changed).replace(geom_pos=jnp.asarray(system.geom_pos).at[1:].set(places))

    def simulator(parameters, q0, qd0):
        own = with_parameters(parameters)

        def step(state, torques):
            state = pipeline.step(own, state, torques)
            return state, state.q

        return pipeline.init(own, q0, qd0), step

    named = {batch: jax_contact.Plan(*plan) for batch, plan in plans.items()}
    return jax_contact.measure(PEER, version, w, simulator, named)


PARTS = {
    FIVE_LINKS.name: lambda: measure(FIVE_LINKS, {1: (500, 200), 64: (50, None)}),
    CUBE.name: lambda: measure(CUBE, {1: (200, 50), 64: (50, None)}),
    QUADRUPED.name: lambda: measure(QUADRUPED, {1: (50, 50), 64: (50, 10), 1024: (10, None)}),
}

if __name__ == "__main__":
    one_thread(FASTER_XLA)
    command_line(__doc__, "benchmarks.peers.brax_contact", PARTS)
