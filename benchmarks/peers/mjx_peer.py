"""MJX: MuJoCo's JAX implementation, differentiated by JAX, in float64 on one core."""

from benchmarks.measure import FASTER_XLA, Row, command_line, require, use_one_thread
from benchmarks.workloads import BATCH, W1, W2, Workload, mjcf

PEER = "MJX"


def measure(w: Workload, lengths: dict[int, int]) -> list[Row]:
    """Forward and gradient with respect to the parameters."""
    version = require("mujoco-mjx", "jax")
    import mujoco
    from mujoco import mjx

    from benchmarks.peers import jax_rollouts

    model = mjx.put_model(mujoco.MjModel.from_xml_string(mjcf(w)))
    template = mjx.make_data(model)

    def simulator(parameters, q0):
        bodies = w.bodies(parameters)
        fields = {"body_mass": "mass", "body_inertia": "inertia", "body_pos": "position", "body_ipos": "centre"}
        values = {
            name: getattr(model, name).at[1:].set(jax_rollouts.stack(bodies, quantity))
            for name, quantity in fields.items()
        }
        with_values = model.replace(**values)

        def step(state):
            data = mjx.step(with_values, template.replace(qpos=state[0], qvel=state[1]))
            return (data.qpos, data.qvel), data.qpos

        return (q0, 0.0 * q0), step

    return jax_rollouts.measure(PEER, version, w, simulator, lengths)


PARTS = {
    "W1": lambda: measure(W1, {1: 500, BATCH: 500}),
    "W2": lambda: measure(W2, {1: 500, BATCH: 50}),
}

if __name__ == "__main__":
    use_one_thread(FASTER_XLA)
    command_line(__doc__, "benchmarks.peers.mjx_peer", PARTS)
