"""MJX on mechanisms in contact with the ground, differentiated by JAX, in float64 on one core.

One solver iteration: more are a loop of unknown length, which has no reverse-mode derivative in JAX.
"""

from benchmarks.contact_workloads import CUBE, FIVE_LINKS, ONE_ITERATION, QUADRUPED, QUADRUPED_17
from benchmarks.measure import FASTER_XLA, Row, command_line, require, use_one_thread
from benchmarks.workloads import Workload, mjcf

PEER = "MJX"


def measure(w: Workload, plans: dict[int, tuple[int | None, int | None]]) -> list[Row]:
    """Rollouts and gradients; plans are numbers of steps of both by batch size."""
    version = require("mujoco-mjx", "jax")
    import jax.numpy as jnp
    import mujoco
    from mujoco import mjx

    from benchmarks.peers import jax_contact, jax_rollouts

    model = mjx.put_model(mujoco.MjModel.from_xml_string(mjcf(w, solver=ONE_ITERATION)))
    template = mjx.make_data(model)

    def with_parameters(parameters):
        if not len(w.parameters):
            return model
        bodies = w.bodies(parameters)
        fields = {"body_mass": "mass", "body_inertia": "inertia", "body_pos": "position", "body_ipos": "centre"}
        values = {
            name: getattr(model, name).at[1:].set(jax_rollouts.stack(bodies, quantity))
            for name, quantity in fields.items()
        }
        shapes = [shape for b in bodies for shape in b.shapes]
        positions = jnp.stack([jnp.stack([jnp.asarray(x, float) for x in shape.position]) for shape in shapes])
        return model.replace(**values, geom_pos=model.geom_pos.at[1:].set(positions))

    def simulator(parameters, q0, qd0):
        with_values = with_parameters(parameters)

        def step(state, torques):
            q, qd, warm_start = state
            forces = jnp.concatenate([jnp.zeros(w.nv - len(torques)), torques])
            data = template.replace(qpos=q, qvel=qd, qacc_warmstart=warm_start, qfrc_applied=forces)
            data = mjx.step(with_values, data)
            return (data.qpos, data.qvel, data.qacc_warmstart), data.qpos

        return (q0, qd0, jnp.zeros(w.nv)), step

    named_plans = {batch: jax_contact.Plan(*plan) for batch, plan in plans.items()}
    return jax_contact.measure(PEER, version, w, simulator, named_plans, "1 iteration")


PARTS = {
    FIVE_LINKS.name: lambda: measure(FIVE_LINKS, {1: (500, 500), 64: (50, 50), 1024: (50, None)}),
    CUBE.name: lambda: measure(CUBE, {1: (500, 500), 64: (100, 100), 1024: (50, None)}),
    QUADRUPED.name: lambda: measure(QUADRUPED, {1: (50, 50), 64: (50, 50), 1024: (50, 20)}),
    QUADRUPED_17.name: lambda: measure(QUADRUPED_17, {1: (50, 50), 64: (50, 20), 1024: (20, None)}),
}

if __name__ == "__main__":
    use_one_thread(FASTER_XLA)
    command_line(__doc__, "benchmarks.peers.mjx_contact", PARTS)
