"""Simulators of the tosses: hybridsim's two contact models and MuJoCo, all with the same cube, table and time step.

Each has several variants (friction cones, integrators); all variants are fitted, and the best one on the training
tosses is selected. Free parameters are friction and two parameters of contact stiffness and damping, or one if the
model has only one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from benchmarks.toss_data import TABLE_HEIGHT, Motion, Tosses
from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.compliant.friction_laws import Coulomb
from hybridsim.contact.contact import AbstractContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.model import Model
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator

IMPULSE, COMPLIANT, MUJOCO = "hybridsim impulse", "hybridsim compliant", "MuJoCo"
SIMULATORS = (IMPULSE, COMPLIANT, MUJOCO)
STEPS_PER_FRAME = 8
"""Steps of 0.84 ms: with 2, 4 or 16 per frame MuJoCo's best fit is worse."""
TRANSITION_VELOCITY = 0.02
"""Transition velocity of friction in the compliant model [m/s]: a fiftieth of the speed of a toss."""
Parameters = Float[np.ndarray, " k"]
Simulated = Callable[[Parameters, Sequence[int]], list[Motion]]
"""Motions of tosses with these parameters."""

FRICTION = (0.1, 0.3)


@dataclass(frozen=True)
class Variant:
    """A variant of a simulator."""

    simulator: str
    variant: str
    ranges: dict[str, tuple[float, float]]
    """Free parameters and the ranges of their initial samples."""
    bind: Callable[[Tosses], Simulated]
    """Returns the simulation function of a set of recordings."""

    @property
    def name(self) -> str:
        return f"{self.simulator}, {self.variant}"


def cube(tosses: Tosses, dt: float) -> Model:
    """The cube above the table."""
    builder = ModelBuilder("cube", timestep=dt).declare_unactuated()
    builder.add_body("cube", joint="root", kind="free", mass=tosses.mass, inertia=(tosses.inertia,) * 3)
    builder.add_geom("cube", "box", (tosses.half_width,) * 3)
    builder.add_geom("world", "plane", (), name="table", at=(0.0, 0.0, TABLE_HEIGHT))
    return builder.build()


def hybridsim_tosses(
    contact: AbstractContact, locations: Callable, values: Callable[[Parameters], tuple[float, ...]] = tuple
) -> Callable[[Tosses], Simulated]:
    """Tosses with a contact model.

    Args:
        contact: the model.
        locations: fields of the model that are fitted.
        values: values of these fields from the parameters.
    """

    def bind(tosses: Tosses) -> Simulated:
        dt = tosses.frame_time / STEPS_PER_FRAME
        sim = Simulator(cube(tosses, dt), contact=contact, dt=dt)

        @eqx.filter_jit
        def positions(sim: Simulator, q, qd, steps: int):
            def one(q, qd):
                state = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), (q, qd))
                return rollout(sim, state, steps=steps).q

            return jax.vmap(one)(q, qd)

        def simulate(parameters: Parameters, numbers: Sequence[int]) -> list[Motion]:
            fitted = eqx.tree_at(lambda s: locations(s.contact), sim, tuple(np.array([x]) for x in values(parameters)))
            frames = tosses.frames(numbers)
            with jax.enable_x64(True):
                q, qd = (jnp.asarray(x) for x in in_cube_frame(tosses.initial_states(numbers)))
                trajectories = np.asarray(positions(fitted, q, qd, (max(frames) - 1) * STEPS_PER_FRAME))
            return [q[: n * STEPS_PER_FRAME : STEPS_PER_FRAME] for q, n in zip(trajectories, frames, strict=True)]

        return simulate

    return bind


def in_cube_frame(states: Float[np.ndarray, "n 13"]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of a free joint from recorded states: `[ω; v]`, both in the cube frame."""
    w, xyz, v = states[:, 3:4], states[:, 4:7], states[:, 7:10]
    # v rotated by the inverse of the quaternion
    twice = 2.0 * np.cross(v, xyz)
    return states[:, :7], np.concatenate([states[:, 10:13], v + w * twice + np.cross(twice, xyz)], axis=1)


def mujoco_tosses(cone: str, integrator: str) -> Callable[[Tosses], Simulated]:
    """Tosses in MuJoCo; parameters are friction and the two entries of `solref`."""

    def bind(tosses: Tosses) -> Simulated:
        import mujoco
        from mujoco import rollout as mujoco_rollout

        side, inertia = tosses.half_width, tosses.inertia
        model = mujoco.MjModel.from_xml_string(f"""
            <mujoco>
              <option timestep="{tosses.frame_time / STEPS_PER_FRAME}" cone="{cone}" integrator="{integrator}"/>
              <worldbody>
                <geom type="plane" size="5 5 1" pos="0 0 {TABLE_HEIGHT}"/>
                <body>
                  <freejoint/>
                  <inertial pos="0 0 0" mass="{tosses.mass}" diaginertia="{inertia} {inertia} {inertia}"/>
                  <geom type="box" size="{side} {side} {side}"/>
                </body>
              </worldbody>
            </mujoco>""")
        data = mujoco.MjData(model)

        def simulate(parameters: Parameters, numbers: Sequence[int]) -> list[Motion]:
            model.geom_friction[:, 0] = parameters[0]
            model.geom_solref[:] = parameters[1:]
            starts = tosses.initial_states(numbers)
            # time, position, velocity: as recorded, linear velocities in the world, angular ones in the cube frame
            starts = np.concatenate([np.zeros((len(starts), 1)), starts], axis=1)
            motions = []
            for start, frames in zip(starts, tosses.frames(numbers), strict=True):
                states, _ = mujoco_rollout.rollout(model, data, start[None], nstep=(frames - 1) * STEPS_PER_FRAME)
                after = np.asarray(states)[0, STEPS_PER_FRAME - 1 :: STEPS_PER_FRAME]
                motions.append(np.concatenate([start[None], after])[:, 1:8])
            return motions

        return simulate

    return bind


def variants() -> list[Variant]:
    """All variants, in the order of fitting."""
    impulse = {"friction": FRICTION, "restitution": (0.01, 0.5)}
    compliant = {"friction": FRICTION, "stiffness [N/m^1.5]": (1e4, 1e6), "damping / stiffness [s/m]": (0.3, 30.0)}
    solref = {"friction": FRICTION, "solref time [s]": (0.002, 0.05), "solref damping ratio": (0.3, 5.0)}

    def with_cone(cone: str) -> Callable[[Tosses], Simulated]:
        contact = ImpulseContact(friction=0.2, restitution=0.1, cone=cone)
        return hybridsim_tosses(contact, lambda c: (c.friction, c.restitution))

    spring = CompliantContact(
        friction=0.2, stiffness=1e5, damping=1e5, law=Coulomb(transition_velocity=np.array([TRANSITION_VELOCITY]))
    )
    with_spring = hybridsim_tosses(
        spring, lambda c: (c.friction, c.stiffness, c.damping), lambda p: (p[0], p[1], p[1] * p[2])
    )
    return [
        Variant(IMPULSE, "circular cone", impulse, with_cone("circular")),
        Variant(IMPULSE, "pyramidal cone", impulse, with_cone("pyramidal")),
        Variant(COMPLIANT, "Coulomb", compliant, with_spring),
        *(
            Variant(MUJOCO, f"{cone}, {integrator}", solref, mujoco_tosses(cone, integrator))
            for cone in ("elliptic", "pyramidal")
            for integrator in ("implicitfast", "Euler")
        ),
    ]
