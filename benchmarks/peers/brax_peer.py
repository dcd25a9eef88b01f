"""Brax, generalized pipeline: differentiated by JAX, in float64 on one core."""

from benchmarks.measure import FASTER_XLA, Row, command_line, require, use_one_thread
from benchmarks.workloads import BATCH, W1, W2, Workload, mjcf

PEER = "Brax"
SHAPE = '<worldbody><geom type="sphere" size="0.01" contype="0" conaffinity="0"/>'
"""Brax requires at least one shape: one in the world without collisions."""


def measure(w: Workload, lengths: dict[int, int]) -> list[Row]:
    """Forward and gradient with respect to the parameters."""
    version = require("brax", "jax")
    import jax.numpy as jnp
    from brax.generalized import pipeline
    from brax.io import mjcf as brax_mjcf

    from benchmarks.peers import jax_rollouts

    system = brax_mjcf.loads(mjcf(w, motors=True).replace("<worldbody>", SHAPE))

    def simulator(parameters, q0):
        bodies = w.bodies(parameters)
        moments = jax_rollouts.stack(bodies, "inertia")
        with_values = system.tree_replace(
            {
                "link.inertia.mass": jax_rollouts.stack(bodies, "mass"),
                "link.inertia.i": moments[:, :, None] * jnp.eye(3),
                "link.inertia.transform.pos": jax_rollouts.stack(bodies, "centre"),
                "link.transform.pos": jax_rollouts.stack(bodies, "position"),
            }
        )
        no_torques = jnp.zeros(system.act_size())

        def step(state):
            state = pipeline.step(with_values, state, no_torques)
            return state, state.q

        return pipeline.init(with_values, q0, 0.0 * q0), step

    return jax_rollouts.measure(PEER, version, w, simulator, lengths)


PARTS = {
    "W1": lambda: measure(W1, {1: 500, BATCH: 500}),
    "W2": lambda: measure(W2, {1: 500, BATCH: 50}),
}

if __name__ == "__main__":
    use_one_thread(FASTER_XLA)
    command_line(__doc__, "benchmarks.peers.brax_peer", PARTS)
