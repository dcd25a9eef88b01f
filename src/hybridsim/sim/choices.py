"""The integrators and backends that a simulator accepts by name; listing them does not load JAX."""

from hybridsim.core.choices import ImportTable

INTEGRATORS = ImportTable(
    {
        "euler": "hybridsim.sim.integrate:euler",
        "rk4": "hybridsim.sim.integrate:rk4",
        "implicit": "hybridsim.sim.integrate:implicit",
    }
)
"""Integrators: semi-implicit Euler, classical Runge–Kutta, implicit in velocity."""

BACKENDS = ("auto", "native", "xla")
"""Backends of rollouts: native code with XLA as fallback, native code only, XLA only."""
