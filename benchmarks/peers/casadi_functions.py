"""The CasADi functions that the driver calls: accelerations, one step, and their reverse derivatives.

All take the sines s and cosines c of the hinges as inputs: the driver computes them once per state, and the reverse
sweep reads what the forward sweep stored: s, c, qdd, and the factors of the mass matrix.
"""

import casadi as ca

from benchmarks.peers.casadi_equations import Free, Hinge, Mechanism
from benchmarks.peers.workloads import Workload, network


class Symbols:
    """Inputs of a workload's functions, and its mechanism in terms of them."""

    def __init__(self, workload: Workload):
        self.workload = workload
        nq, nv, hinges = workload.nq, workload.nv, workload.nv - 6 * workload.is_free
        self.q, self.qd, self.tau = ca.SX.sym("q", nq), ca.SX.sym("qd", nv), ca.SX.sym("tau", nv)
        self.s, self.c = ca.SX.sym("s", hinges), ca.SX.sym("c", hinges)
        self.p = ca.SX.sym("p", len(workload.parameters))
        turns = iter(zip(ca.vertsplit(self.s), ca.vertsplit(self.c), strict=True))
        bodies = workload.bodies(ca.vertsplit(self.p))
        quaternion = ca.vertsplit(self.q[3:7]) if workload.is_free else []
        joints = [Free(*quaternion) if b.joint == "free" else Hinge(b.joint, *next(turns)) for b in bodies]
        self.mechanism = Mechanism(bodies, joints)
        self.factors = self.mechanism.factorise()
        entries: dict[int, ca.SX] = {}
        _looked_up(self.factors, entries)
        self.kept = ca.vertcat(*entries.values())
        """What is symbolic in the factors, as one vector."""
        self.stored = ca.SX.sym("stored", len(entries))
        stored = dict(zip(entries, ca.vertsplit(self.stored), strict=True))
        self.stored_factors = _looked_up(self.factors, stored)
        """The same factors, read from `stored`."""

    def acceleration(self, tau):
        m = self.mechanism
        forces = m.forces(ca.vertsplit(self.qd), None)
        return ca.vertcat(*m.solve(self.factors, forces, ca.vertsplit(tau)))

    def pulled_back(self, g, qdd, factors):
        """Gradients of g · qdd with respect to q, qd, τ and p, at the accelerations `qdd`."""
        m, unknowns = self.mechanism, (self.q, self.s, self.c, self.qd, self.p)
        # λ and qdd are constants of φ's derivative: symbols first, their expressions afterwards
        held_rates, held_qdd = ca.SX.sym("rates", g.numel()), ca.SX.sym("qdd", g.numel())
        power = m.power(ca.vertsplit(held_rates), m.forces(ca.vertsplit(self.qd), ca.vertsplit(held_qdd)))
        gradients = [-ca.gradient(power, x) for x in unknowns]
        rates = ca.vertcat(*m.solve(factors, None, ca.vertsplit(g)))
        gq, gs, gc, gqd, gp = ca.substitute(gradients, [held_rates, held_qdd], [rates, qdd])
        turned = gs * self.c - gc * self.s
        return gq + ca.vertcat(ca.SX.zeros(self.workload.nq - turned.numel()), turned), gqd, rates, gp


def acceleration(workload: Workload) -> ca.Function:
    """(q, s, c, qd, τ, p) → qdd."""
    x = Symbols(workload)
    return _function("acceleration", [x.q, x.s, x.c, x.qd, x.tau, x.p], [x.acceleration(x.tau)])


def acceleration_vjp(workload: Workload) -> ca.Function:
    """(q, s, c, qd, τ, p, g) → gradients of g · qdd with respect to q, qd, τ, p."""
    x = Symbols(workload)
    g = ca.SX.sym("g", workload.nv)
    gradients = x.pulled_back(g, x.acceleration(x.tau), x.factors)
    return _function("acceleration_vjp", [x.q, x.s, x.c, x.qd, x.tau, x.p, g], gradients)


def step(workload: Workload) -> ca.Function:
    """(q, s, c, qd, τ, p) → new q, new qd, qdd, and what `step_vjp` wants stored."""
    x = Symbols(workload)
    qdd = x.acceleration(x.tau + _springs(workload, x))
    qd = x.qd + workload.dt * qdd
    return _function("step", [x.q, x.s, x.c, x.qd, x.tau, x.p], [_moved(workload, x.q, qd), qd, qdd, x.kept])


def step_vjp(workload: Workload) -> ca.Function:
    """(q, s, c, qd, qdd, stored, p, gradients of the new q and qd) → gradients with respect to q, qd, τ, p."""
    x = Symbols(workload)
    qdd, gq, gqd = ca.SX.sym("qdd", workload.nv), ca.SX.sym("gq", workload.nq), ca.SX.sym("gqd", workload.nv)
    new_qd = ca.SX.sym("new_qd", workload.nv)
    moved = _moved(workload, x.q, new_qd)
    direct, through = (ca.jtimes(moved, y, gq, True) for y in (x.q, new_qd))
    direct, through = ca.substitute([direct, through], [new_qd], [x.qd + workload.dt * qdd])
    g = gqd + through
    out_q, out_qd, rates, gp = x.pulled_back(workload.dt * g, qdd, x.stored_factors)
    springs = _springs(workload, x)
    out_q += direct + ca.jtimes(springs, x.q, rates, True)
    out_qd += g + ca.jtimes(springs, x.qd, rates, True)
    inputs = [x.q, x.s, x.c, x.qd, qdd, x.stored, x.p, gq, gqd]
    return _function("step_vjp", inputs, [out_q, out_qd, rates, gp])


def network_gradient(parameters: int, inputs: int) -> ca.Function:
    """(p, x) → loss of the network and its gradient with respect to p."""
    p, x = ca.SX.sym("p", parameters), ca.SX.sym("x", inputs)
    loss = sum(y * y for y in network(ca.vertsplit(p), ca.vertsplit(x), ca.tanh))
    return _function("network", [p, x], [loss, ca.gradient(loss, p)])


def _function(name: str, inputs: list, outputs) -> ca.Function:
    return ca.Function(name, inputs, ca.cse([ca.densify(y) for y in outputs]))


def _looked_up(nested, entries: dict):
    """The same nesting with every symbolic scalar looked up in `entries`; those that it lacks are entered."""
    if isinstance(nested, list | tuple):
        return type(nested)(_looked_up(x, entries) for x in nested)
    scalar = ca.SX(nested)
    return nested if scalar.is_constant() else entries.setdefault(scalar.element_hash(), scalar)


def _springs(workload: Workload, x: Symbols):
    base = 6 * workload.is_free
    hinges = x.q[workload.nq - (workload.nv - base) :]
    return ca.vertcat(ca.SX.zeros(base), -workload.stiffness * hinges - workload.damping * x.qd[base:])


def _moved(workload: Workload, q, qd):
    """Coordinates after one step at the velocities `qd`."""
    dt = workload.dt
    if not workload.is_free:
        return q + dt * qd
    h = 0.5 * dt * qd[3:6]
    angle = ca.sqrt(ca.dot(h, h) + 1e-300)  # never zero, so that its derivative is finite
    v, cosine = ca.sin(angle) / angle * h, ca.cos(angle)
    w, u = q[3], q[4:7]
    turned = ca.vertcat(w * cosine - ca.dot(u, v), w * v + cosine * u + ca.cross(u, v))
    return ca.vertcat(q[:3] + dt * qd[:3], turned, q[7:] + dt * qd[6:])
