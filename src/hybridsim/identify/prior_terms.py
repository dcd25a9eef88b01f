"""Terms of the objective that need no simulation: priors on θ and on initial states, and penalties."""

import numpy as np
from jaxtyping import Float

from hybridsim.identify.initial_state_layout import InitialStateLayout
from hybridsim.identify.penalty import Sparsity, l2_weights, sparsity_penalty
from hybridsim.identify.theta_layout import ThetaLayout

Array = np.ndarray


class PriorTerms:
    """Priors and penalties; P, W, N and s are as in `objective.py`."""

    def __init__(
        self,
        layout: ThetaLayout,
        state_layout: InitialStateLayout,
        guess: tuple[Array, Array],
        initial_state_weight: Float[Array, " s"],
        sparsity: Sparsity,
    ):
        """Prepare the penalties.

        Args:
            layout: layout of θ, with its prior.
            state_layout: layout of the initial states.
            guess: prior mean of coordinates (W, nq) and velocities (W, nv).
            initial_state_weight: reciprocal standard deviation of each entry of the delta of an initial state.
            sparsity: penalties on networks.
        """
        self.layout, self.state_layout, self.guess = layout, state_layout, guess
        self.initial_state_weight = initial_state_weight
        self.penalty, self.l2 = sparsity_penalty(layout, sparsity), l2_weights(layout, sparsity)

    @property
    def has_initial_state_prior(self) -> bool:
        """Whether initial states have a prior."""
        return bool(self.initial_state_weight.any())

    def cost_and_gradients(
        self, theta: Float[Array, "P N"], q: Float[Array, "P W nq"], qd: Float[Array, "P W nv"]
    ) -> tuple[Float[Array, " P"], Float[Array, "P N"], Float[Array, "P W s"]]:
        """Cost, and its gradients with respect to θ and initial states.

        The gradient excludes penalties that are not differentiable at zero.
        """
        weight = self.layout.prior_weight
        residual = weight * (theta - self.layout.prior_mean)
        cost = 0.5 * np.square(residual).sum(axis=1) + 0.5 * (self.l2 * np.square(theta)).sum(axis=1)
        cost = cost + self.penalty(theta)
        theta_gradient = weight * residual + self.l2 * theta
        state_residual, jacobian = self.initial_state_residuals(q, qd)
        cost = cost + 0.5 * np.square(state_residual).sum(axis=(1, 2))
        return cost, theta_gradient, (state_residual[:, :, None] @ jacobian)[:, :, 0]

    def theta_hessian(self) -> Float[Array, "N N"]:
        """Second derivatives with respect to θ, without penalties that are not differentiable at zero."""
        return np.diag(self.layout.prior_weight**2 + self.l2)

    def initial_state_residuals(
        self, q: Float[Array, "P W nq"], qd: Float[Array, "P W nv"]
    ) -> tuple[Float[Array, "P W s"], Float[Array, "P W s s"]]:
        """Residuals of the prior on the initial states, with Jacobians."""
        weight = self.initial_state_weight
        shape = (*q.shape[:2], len(weight))
        if not self.has_initial_state_prior:
            return np.zeros(shape), np.zeros((*shape, len(weight)))
        q0, qd0 = np.broadcast_to(self.guess[0], q.shape), np.broadcast_to(self.guess[1], qd.shape)
        difference = self.state_layout.difference(q0, qd0, q, qd)
        jacobian = self.state_layout.difference_jacobians(q0, q)[1]
        return weight * difference, weight[:, None] * jacobian
