"""The step and its reverse derivative, structured by hand so that the generated C is short.

- The driver computes sines s and cosines c of the hinges once per state; the reverse sweep reads the
  values saved by the forward sweep: s, c, qdd, and the factors of the mass matrix.
- The derivative does not differentiate the articulated-body recursion. With λ = M⁻¹ g, the derivative of g·qdd with
  respect to τ is λ, and with respect to any other x it is −∂φ/∂x, where φ = λ · ID(x, qdd) is one recursion over the
  bodies.
"""

import casadi as ca

from benchmarks.peers.casadi_model import function, hinges, integrate, mechanism, springs
from benchmarks.workloads import Workload


class Symbols:
    """Symbolic inputs of a workload's functions, and its mechanism as a function of them."""

    def __init__(self, w: Workload):
        self.workload = w
        self.q, self.qd, self.tau = ca.SX.sym("q", w.nq), ca.SX.sym("qd", w.nv), ca.SX.sym("tau", w.nv)
        self.s, self.c = ca.SX.sym("s", hinges(w)), ca.SX.sym("c", hinges(w))
        self.p = ca.SX.sym("p", len(w.parameters))
        sin_cos = zip(ca.vertsplit(self.s), ca.vertsplit(self.c), strict=True)
        self.mechanism = mechanism(w, self.q, self.p, sin_cos)
        self.factors = self.mechanism.factorize()
        entries: dict[int, ca.SX] = {}
        _look_up(self.factors, entries)
        self.saved = ca.vertcat(*entries.values())
        """Symbolic entries of the factors, as one vector."""
        self.stored = ca.SX.sym("stored", len(entries))
        stored = dict(zip(entries, ca.vertsplit(self.stored), strict=True))
        self.stored_factors = _look_up(self.factors, stored)
        """The same factors, read from `stored`."""

    def acceleration(self, tau):
        m = self.mechanism
        forces = m.forces(ca.vertsplit(self.qd), None)
        return ca.vertcat(*m.solve(self.factors, forces, ca.vertsplit(tau)))

    def vjp(self, g, qdd, factors):
        """Gradients of g · qdd with respect to q, qd, τ and p, at the accelerations `qdd`."""
        m, unknowns = self.mechanism, (self.q, self.s, self.c, self.qd, self.p)
        # λ and qdd are constant in φ's derivative: symbols first, substituted afterwards
        constant_rates, constant_qdd = ca.SX.sym("rates", g.numel()), ca.SX.sym("qdd", g.numel())
        power = m.power(ca.vertsplit(constant_rates), m.forces(ca.vertsplit(self.qd), ca.vertsplit(constant_qdd)))
        gradients = [-ca.gradient(power, x) for x in unknowns]
        rates = ca.vertcat(*m.solve(factors, None, ca.vertsplit(g)))
        gq, gs, gc, gqd, gp = ca.substitute(gradients, [constant_rates, constant_qdd], [rates, qdd])
        wrt_angles = gs * self.c - gc * self.s
        return gq + ca.vertcat(ca.SX.zeros(self.workload.nq - wrt_angles.numel()), wrt_angles), gqd, rates, gp


def acceleration_vjp(w: Workload) -> ca.Function:
    """(q, s, c, qd, τ, p, g) → gradients of g · qdd with respect to q, qd, τ, p."""
    x = Symbols(w)
    g = ca.SX.sym("g", w.nv)
    gradients = x.vjp(g, x.acceleration(x.tau), x.factors)
    return function("acceleration_vjp", [x.q, x.s, x.c, x.qd, x.tau, x.p, g], gradients)


def step(w: Workload) -> ca.Function:
    """(q, s, c, qd, τ, p) → new q, new qd, qdd, and the values saved for `step_vjp`."""
    x = Symbols(w)
    qdd = x.acceleration(x.tau + springs(w, x.q, x.qd))
    qd = x.qd + w.dt * qdd
    return function("step", [x.q, x.s, x.c, x.qd, x.tau, x.p], [integrate(w, x.q, qd), qd, qdd, x.saved])


def step_vjp(w: Workload) -> ca.Function:
    """(q, s, c, qd, qdd, stored, p, gradients of the new q and qd) → gradients with respect to q, qd, τ, p."""
    x = Symbols(w)
    qdd, gq, gqd = ca.SX.sym("qdd", w.nv), ca.SX.sym("gq", w.nq), ca.SX.sym("gqd", w.nv)
    new_qd = ca.SX.sym("new_qd", w.nv)
    new_q = integrate(w, x.q, new_qd)
    direct, through = (ca.jtimes(new_q, y, gq, True) for y in (x.q, new_qd))
    direct, through = ca.substitute([direct, through], [new_qd], [x.qd + w.dt * qdd])
    g = gqd + through
    out_q, out_qd, rates, gp = x.vjp(w.dt * g, qdd, x.stored_factors)
    torques = springs(w, x.q, x.qd)
    out_q += direct + ca.jtimes(torques, x.q, rates, True)
    out_qd += g + ca.jtimes(torques, x.qd, rates, True)
    inputs = [x.q, x.s, x.c, x.qd, qdd, x.stored, x.p, gq, gqd]
    return function("step_vjp", inputs, [out_q, out_qd, rates, gp])


def _look_up(nested, entries: dict):
    """The nested structure with every symbolic scalar looked up in `entries`; missing ones are added."""
    if isinstance(nested, list | tuple):
        return type(nested)(_look_up(x, entries) for x in nested)
    scalar = ca.SX(nested)
    return nested if scalar.is_constant() else entries.setdefault(scalar.element_hash(), scalar)
