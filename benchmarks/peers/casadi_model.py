"""A workload's step as one CasADi expression: the articulated-body equations, springs and semi-implicit Euler."""

import casadi as ca

from benchmarks.peers.casadi_equations import Free, Hinge, Mechanism
from benchmarks.workloads import Workload, network


class Symbols:
    """Symbolic inputs of a workload, and expressions of them."""

    def __init__(self, workload: Workload):
        self.workload = workload
        self.q, self.qd = ca.SX.sym("q", workload.nq), ca.SX.sym("qd", workload.nv)
        self.tau, self.p = ca.SX.sym("tau", workload.nv), ca.SX.sym("p", len(workload.parameters))

    @property
    def inputs(self) -> list:
        return [self.q, self.qd, self.tau, self.p]

    def acceleration(self, tau):
        """qdd for joint torques `tau`."""
        w = self.workload
        angles = ca.vertsplit(self.q[w.nq - hinges(w) :])
        sin_cos = iter([(ca.sin(x), ca.cos(x)) for x in angles])
        m = mechanism(w, self.q, self.p, sin_cos)
        return ca.vertcat(*m.solve(m.factorize(), m.forces(ca.vertsplit(self.qd), None), ca.vertsplit(tau)))

    def step(self):
        """New coordinates and velocities."""
        w = self.workload
        qd = self.qd + w.dt * self.acceleration(self.tau + springs(w, self.q, self.qd))
        return ca.vertcat(integrate(w, self.q, qd), qd)


def mechanism(w: Workload, q, p, sin_cos) -> Mechanism:
    """Mechanism as a function of coordinates, parameters, and an iterator of (sine, cosine) of the hinges."""
    bodies = w.bodies(ca.vertsplit(p))
    quaternion = ca.vertsplit(q[3:7]) if w.is_free else []
    return Mechanism(
        bodies, [Free(*quaternion) if b.joint == "free" else Hinge(b.joint, *next(sin_cos)) for b in bodies]
    )


def hinges(w: Workload) -> int:
    """Number of hinges."""
    return w.nv - 6 * w.is_free


def springs(w: Workload, q, qd):
    """Joint torques of springs and dampers."""
    base = w.nv - hinges(w)
    return ca.vertcat(ca.SX.zeros(base), -w.stiffness * q[w.nq - hinges(w) :] - w.damping * qd[base:])


def integrate(w: Workload, q, qd):
    """Coordinates after one step with velocities `qd`."""
    dt = w.dt
    if not w.is_free:
        return q + dt * qd
    h = 0.5 * dt * qd[3:6]
    angle = ca.sqrt(ca.dot(h, h) + 1e-300)  # nonzero, so that its derivative is finite
    v, cosine = ca.sin(angle) / angle * h, ca.cos(angle)
    s, u = q[3], q[4:7]
    rotated = ca.vertcat(s * cosine - ca.dot(u, v), s * v + cosine * u + ca.cross(u, v))
    return ca.vertcat(q[:3] + dt * qd[:3], rotated, q[7:] + dt * qd[6:])


def function(name: str, inputs: list, outputs) -> ca.Function:
    """CasADi function with dense outputs and common subexpression elimination."""
    return ca.Function(name, inputs, ca.cse([ca.densify(y) for y in outputs]))


def step(w: Workload) -> ca.Function:
    """(q, qd, τ, p) → new q, new qd."""
    x = Symbols(w)
    return function("step", x.inputs, ca.vertsplit(x.step(), [0, w.nq, w.nq + w.nv]))


def step_vjp(w: Workload) -> ca.Function:
    """(q, qd, τ, p, gradients of the new q and qd) → gradients with respect to q, qd, τ, p, by CasADi."""
    x = Symbols(w)
    return _vjp("step_vjp", x, x.step(), [ca.SX.sym("gq", w.nq), ca.SX.sym("gqd", w.nv)])


def acceleration(w: Workload) -> ca.Function:
    """(q, qd, τ, p) → qdd."""
    x = Symbols(w)
    return function("acceleration", x.inputs, [x.acceleration(x.tau)])


def acceleration_vjp(w: Workload) -> ca.Function:
    """(q, qd, τ, p, g) → gradients of g · qdd with respect to q, qd, τ, p, by CasADi."""
    x = Symbols(w)
    return _vjp("acceleration_vjp", x, x.acceleration(x.tau), [ca.SX.sym("g", w.nv)])


def network_gradient(parameters: int, inputs: int) -> ca.Function:
    """(p, x) → loss of the network and its gradient with respect to p."""
    p, x = ca.SX.sym("p", parameters), ca.SX.sym("x", inputs)
    loss = sum(y * y for y in network(ca.vertsplit(p), ca.vertsplit(x), ca.tanh))
    return function("network", [p, x], [loss, ca.gradient(loss, p)])


def _vjp(name: str, x: Symbols, value, cotangents: list) -> ca.Function:
    bounds = [0]
    for part in x.inputs:
        bounds.append(bounds[-1] + part.numel())
    # all inputs in one call, so that CasADi traverses the expression once
    inputs = ca.vertcat(*x.inputs)
    gradient = ca.jtimes(value, inputs, ca.vertcat(*cotangents), True)
    return function(name, [*x.inputs, *cotangents], ca.vertsplit(gradient, bounds))
