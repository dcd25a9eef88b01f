"""Equations of motion M qdd + C = τ of a mechanism at one state, for solvers that add constraint impulses."""

from typing import NamedTuple

from jaxtyping import Float

from hybridsim.core.types import AnyArray, Qdd, Tau
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.dynamics.mass_factors import MassFactors, mass_factors
from hybridsim.dynamics.rnea import tree_bias_torques, tree_torques
from hybridsim.model.coordinates import expand_v, reduce_tau
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia


class EquationsOfMotion(NamedTuple):
    """Quantities that determine the joint accelerations of a mechanism without constraint impulses."""

    model: Model
    kin: Kinematics
    inertia: RigidInertia
    bias: Float[AnyArray, "nb 6"]
    """Bias wrenches of the bodies minus external wrenches [N·m, N]."""
    tau: Tau
    """Joint torques or forces [N·m or N]."""

    def mass_factors(self) -> MassFactors:
        """Factors of M."""
        return mass_factors(self.model, self.kin, self.inertia)

    def net_torque(self) -> Tau:
        """τ − C, which is M qdd without impulses."""
        bias = tree_bias_torques(self.model, self.kin, self.inertia, self.bias)
        return self.tau - reduce_tau(self.model, bias)

    def imbalance(self, qdd: Qdd) -> Tau:
        """τ − (M qdd + C) by inverse dynamics at given accelerations; zero without impulses."""
        tree_tau = tree_torques(self.model, self.kin, self.inertia, self.bias, expand_v(self.model, qdd))
        return self.tau - reduce_tau(self.model, tree_tau)
