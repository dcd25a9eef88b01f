"""Conversion between states of windows, rows of cells for compiled code, and deltas in the tangent space.

A delta has one entry per degree of freedom for the configuration and one for the velocity; joints with quaternions have
fewer degrees of freedom than coordinates.
"""

from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float

from hybridsim.model import coordinates
from hybridsim.native.lowering.pytree_layout import PytreeLayout
from hybridsim.sim.guard import initial_carry
from hybridsim.sim.simulator import Simulator

Array = np.ndarray


class InitialStateLayout:
    """Conversion between batches of a simulator's states, rows of cells and deltas."""

    def __init__(self, sim: Simulator, layout: PytreeLayout):
        """Locate coordinates, velocities and time in the cells.

        Args:
            sim: simulator.
            layout: layout of the rollout carry in cells.
        """
        self.sim, self.layout = sim, layout
        model = self.model = sim.model
        self.nq, self.nv = model.nq, model.nv
        state = layout.unpack(np.arange(layout.size, dtype=float)).state
        self.q_cells, self.qd_cells = state.q.astype(int), state.qd.astype(int)
        self.t_cell = int(state.t)

    @property
    def size(self) -> int:
        """Dimension of the tangent space of a state."""
        return 2 * self.nv

    @cached_property
    def is_euclidean(self) -> bool:
        """Whether `retract` of the configuration is plain addition."""
        return self.nq == self.nv

    def pack(self, q: Float[Array, "batch nq"], qd: Float[Array, "batch nv"], t: Float[Array, " batch"]) -> Array:
        """Pack initial states at times `t` [s] into rows of cells; the simulator initializes internal states."""
        if not self.has_internal_state:
            rows = np.tile(self._template, (len(q), 1))
            rows[:, self.q_cells], rows[:, self.qd_cells], rows[:, self.t_cell] = q, qd, t
            return rows
        return np.asarray(self._initialize(q, qd, t))

    def directions(self, q: Float[Array, "batch nq"], qd: Float[Array, "batch nv"]) -> Float[Array, "batch d x"]:
        """Tangents of the cells along every entry of the delta; a batch of one if they are the same for all states."""
        if self.has_internal_state:
            return np.asarray(self._initialize_jacobian(q, qd)).transpose(0, 2, 1)
        tangents = np.zeros((1 if self.is_euclidean else len(q), self.size, self.layout.size))
        tangents[:, self.nv + np.arange(self.nv), self.qd_cells] = 1.0
        if self.is_euclidean:
            tangents[:, np.arange(self.nv), self.q_cells] = 1.0
        else:
            tangents[:, : self.nv, self.q_cells] = np.asarray(self._retract_jacobian(q)).transpose(0, 2, 1)
        return tangents

    def delta_tangents(
        self, q: Float[Array, "batch nq"], tangents: Float[Array, "batch d n"]
    ) -> Float[Array, "batch d s"]:
        """Tangents of states at `q` as deltas, from tangents of their coordinates and velocities."""
        dq, dqd = tangents[..., : self.nq], tangents[..., self.nq :]
        if not self.is_euclidean:
            # first-order inverse of the retraction
            dq = dq @ np.linalg.pinv(np.asarray(self._retract_jacobian(q))).transpose(0, 2, 1)
        return np.concatenate([dq, dqd], axis=-1)

    def delta_cotangents(self, q: Array, qd: Array, cells: Float[Array, "batch x"]) -> Float[Array, "batch s"]:
        """Cotangents of deltas, from cotangents of cells."""
        directions = np.broadcast_to(self.directions(q, qd), (len(q), self.size, cells.shape[1]))
        return np.einsum("bdx,bx->bd", directions, cells)

    def retract(self, q: Array, qd: Array, delta: Float[Array, "... s"]) -> tuple[Array, Array]:
        """Move states by deltas, with any leading axes."""
        qd = qd + delta[..., self.nv :]
        if self.is_euclidean:
            return q + delta[..., : self.nv], qd
        flat = self._retract(q.reshape(-1, self.nq), delta[..., : self.nv].reshape(-1, self.nv))
        return np.asarray(flat).reshape(q.shape), qd

    def difference(self, q: Array, qd: Array, q_to: Array, qd_to: Array) -> Float[Array, "... s"]:
        """Delta from states to other states, with any leading axes."""
        if self.is_euclidean:
            dq = q_to - q
        else:
            flat = self._difference(q.reshape(-1, self.nq), q_to.reshape(-1, self.nq))
            dq = np.asarray(flat).reshape(*q.shape[:-1], self.nv)
        return np.concatenate([dq, qd_to - qd], axis=-1)

    def difference_jacobians(self, q: Array, q_to: Array) -> tuple[Float[Array, "... s s"], Float[Array, "... s s"]]:
        """Jacobians of `difference` with respect to deltas of its first and of its second state."""
        identity = np.broadcast_to(np.eye(self.size), (*q.shape[:-1], self.size, self.size))
        if self.is_euclidean:
            return -identity, identity
        J_from, J_to = -identity, identity.copy()
        blocks = self._difference_jacobians(q.reshape(-1, self.nq), q_to.reshape(-1, self.nq))
        for jacobian, block in zip((J_from, J_to), blocks, strict=True):
            jacobian[..., : self.nv, : self.nv] = np.asarray(block).reshape(*q.shape[:-1], self.nv, self.nv)
        return J_from, J_to

    def normalize(self, q: Float[Array, "batch nq"]) -> Float[Array, "batch nq"]:
        """Scale quaternions to unit length."""
        return q if self.is_euclidean else np.asarray(self._normalize(q))

    def velocities(self, q: Float[Array, "batch nq"], rate: Float[Array, "batch nq"]) -> Float[Array, "batch nv"]:
        """Velocities from coordinate rates, in the least-squares sense."""
        if self.is_euclidean:
            return rate
        return np.einsum("bvq,bq->bv", np.linalg.pinv(np.asarray(self._retract_jacobian(q))), rate)

    @cached_property
    def _template(self) -> Array:
        with jax.enable_x64(True):
            return self.layout.pack(jax.tree.map(np.asarray, initial_carry(self.sim.initial_state())))

    @cached_property
    def has_internal_state(self) -> bool:
        """Whether actuation stages have internal states, which are initialized from q and q̇."""
        with jax.enable_x64(True):
            return bool(jax.tree.leaves(self.sim.initial_state().aux["actuation"]))

    @cached_property
    def _initialize(self):
        return _jit_float64(lambda q, qd, t: self.layout.pack_traced(initial_carry(self.sim.initial_state(q, qd, t))))

    @cached_property
    def _initialize_jacobian(self):
        def cells(q, qd, delta):
            new_q = coordinates.retract(self.model, q, delta[: self.nv])
            return self.layout.pack_traced(initial_carry(self.sim.initial_state(new_q, qd + delta[self.nv :])))

        return _jit_float64(lambda q, qd: jax.jacfwd(cells, argnums=2)(q, qd, np.zeros(self.size)))

    @cached_property
    def _retract(self):
        return _jit_float64(lambda q, d: coordinates.retract(self.model, q, d))

    @cached_property
    def _normalize(self):
        return _jit_float64(lambda q: coordinates.normalize(self.model, q))

    @cached_property
    def _difference(self):
        return _jit_float64(lambda q, to: coordinates.difference(self.model, q, to))

    @cached_property
    def _difference_jacobians(self):
        def difference(q, to, d, to_d):
            model = self.model
            return coordinates.difference(model, coordinates.retract(model, q, d), coordinates.retract(model, to, to_d))

        zero = np.zeros(self.nv)
        return _jit_float64(lambda q, to: jax.jacfwd(difference, argnums=(2, 3))(q, to, zero, zero))

    @cached_property
    def _retract_jacobian(self):
        """∂q/∂delta at each configuration."""
        zero = np.zeros(self.nv)
        return _jit_float64(lambda q: jax.jacfwd(lambda d: coordinates.retract(self.model, q, d))(zero))


def _jit_float64(function):
    mapped = jax.jit(jax.vmap(function))

    def run(*arrays):
        # padded to powers of two to limit compilations: the batch shrinks as windows converge
        count = len(arrays[0])
        size = 1 << max(count - 1, 0).bit_length()
        padded = [np.concatenate([x, np.repeat(x[:1], size - count, axis=0)]) for x in arrays]
        with jax.enable_x64(True):
            return jax.tree.map(lambda x: np.asarray(x)[:count], mapped(*padded))

    return run
