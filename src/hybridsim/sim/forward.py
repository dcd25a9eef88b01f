"""One evaluation of the dynamics: joint accelerations from state and inputs; publishes the tapped quantities."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.contact_state import contact_state
from hybridsim.core.types import AnyArray, Command, Q, Qd, Qdd
from hybridsim.dynamics.aba import articulated_body_algorithm
from hybridsim.dynamics.crba import reduced_mass_matrix
from hybridsim.dynamics.equations_of_motion import EquationsOfMotion
from hybridsim.dynamics.inertias import bias_wrenches, body_inertias
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.passive import passive_torques
from hybridsim.model.coordinates import retract
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State
from hybridsim.spatial.transform import Pose
from hybridsim.taps.taps import Taps


class Evaluation(NamedTuple):
    """Result of one evaluation of the dynamics, with the state and commands as changed by grafts."""

    qdd: Qdd
    """Joint accelerations [rad/s² or m/s²]."""
    q: Q
    qd: Qd
    u: Command
    contact_aux: Any
    """Internal state of the contact model for the next step; None for models without one."""


def forward(sim: Simulator, state: State, inputs: Inputs, taps: Taps) -> Evaluation:
    """Joint accelerations at a state, with the state and commands as changed by grafts."""
    model = sim.model
    taps("step.time", state.t)
    taps.publish_user_inputs(inputs.user)

    # state and mass properties
    q = taps("joint.q", state.q, partial(retract, model))
    qd = taps("joint.qd", state.qd)
    inertia = taps("body.inertia", body_inertias(model))

    # kinematics
    kin = kinematics(model, q, qd)
    X_WB = taps("body.pose", kin.X_WB)
    V_WB_B = taps("body.twist", kin.V_WB_B)
    kin = eqx.tree_at(lambda k: k.V_WB_B, kin, V_WB_B)
    contacts = contact_state(model, sim.contact.candidates, X_WB, V_WB_B, taps)

    # joint torques
    passive = taps("joint.passive", passive_torques(model, q, qd, smooth=sim.contact.handles_joint_constraints))
    u = taps("actuator.command", inputs.u)
    actuation = taps("joint.actuation", sim.actuation.torques(model, q, qd, u, state.aux["actuation"], sim.dt))
    tau = taps("joint.tau", passive + actuation)

    # body forces
    F_ext = taps("body.external_wrench", external_wrenches(inputs, X_WB))
    bias = taps("body.bias_wrench", bias_wrenches(inertia, kin))
    if taps.has_reader("joint.mass_matrix"):
        taps("joint.mass_matrix", reduced_mass_matrix(model, kin, inertia))
    F_ext = F_ext + sim.contact.wrenches(model, contacts, X_WB, sim.dt, taps)

    # joint accelerations, with impulses if the contact model has constraints
    contact_aux = state.aux.get("contact")
    if sim.contact.has_constraints:
        equations = EquationsOfMotion(model, kin, inertia, bias - F_ext, tau)
        qdd, contact_aux = sim.contact.solve_constraints(equations, q, qd, contacts, contact_aux, sim.dt, taps)
    else:
        qdd = articulated_body_algorithm(model, kin, inertia, bias - F_ext, tau)
    return Evaluation(taps("joint.qdd", qdd), q, qd, u, contact_aux)


def external_wrenches(inputs: Inputs, X_WB: Pose) -> Float[AnyArray, "nb 6"]:
    """External wrench on each body at its origin, rotated from world axes into the body frame [N·m, N]."""
    if inputs.wrench is None:
        return np.zeros((X_WB.p.shape[0], 6))
    return jax.vmap(lambda R, F: jnp.concatenate([F[:3] @ R, F[3:] @ R]))(X_WB.R, jnp.asarray(inputs.wrench))
