"""Starting states of windows: as rows of cells for compiled code, and their changes in the tangent space.

A change of a starting state has one number per degree of freedom for the configuration and one for the velocity; on
joints with quaternions that is fewer than the state has numbers.
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


class InitialStates:
    """States of a simulator as rows of cells."""

    def __init__(self, sim: Simulator, form: PytreeLayout):
        """Prepare.

        Args:
            sim: whose states they are.
            form: of a rollout's state in cells.
        """
        self.sim, self.form = sim, form
        model = self.model = sim.model
        self.nq, self.nv = model.nq, model.nv
        state = form.unpack(np.arange(form.size, dtype=float)).state
        self.q_cells, self.qd_cells = state.q.astype(int), state.qd.astype(int)
        self.t_cell = int(state.t)

    @property
    def size(self) -> int:
        """Numbers of a change of a state."""
        return 2 * self.nv

    @cached_property
    def is_flat(self) -> bool:
        """Is a change of the configuration a plain sum?"""
        return self.nq == self.nv

    def rows(self, q: Float[Array, "batch nq"], qd: Float[Array, "batch nv"], t: Float[Array, " batch"]) -> Array:
        """States that begin at times `t` [s], with whatever else they remember as it is at the start."""
        if not self.remembers:
            rows = np.tile(self._template, (len(q), 1))
            rows[:, self.q_cells], rows[:, self.qd_cells], rows[:, self.t_cell] = q, qd, t
            return rows
        return np.asarray(self._begun(q, qd, t))

    def directions(self, q: Float[Array, "batch nq"], qd: Float[Array, "batch nv"]) -> Float[Array, "batch d x"]:
        """How the cells change with each number of a change of the state; one for all where that is the same."""
        if self.remembers:
            return np.asarray(self._begun_slopes(q, qd)).transpose(0, 2, 1)
        found = np.zeros((1 if self.is_flat else len(q), self.size, self.form.size))
        found[:, self.nv + np.arange(self.nv), self.qd_cells] = 1.0
        if self.is_flat:
            found[:, np.arange(self.nv), self.q_cells] = 1.0
        else:
            found[:, : self.nv, self.q_cells] = np.asarray(self._by_change(q)).transpose(0, 2, 1)
        return found

    def changes_of(self, q: Float[Array, "batch nq"], along: Float[Array, "batch d n"]) -> Float[Array, "batch d s"]:
        """Changes of states at `q`, from those of their coordinates and velocities along directions."""
        dq, dqd = along[..., : self.nq], along[..., self.nq :]
        if not self.is_flat:
            # the inverse of a retraction, to first order
            dq = dq @ np.linalg.pinv(np.asarray(self._by_change(q))).transpose(0, 2, 1)
        return np.concatenate([dq, dqd], axis=-1)

    def coordinate_cotangents(self, q: Float[Array, "batch nq"], of_change: Float[Array, "batch s"]) -> Array:
        """Cotangents of coordinates and velocities from those of changes of states at `q`."""
        ct_q = of_change[:, : self.nv]
        if not self.is_flat:
            ct_q = np.einsum("bv,bvq->bq", ct_q, np.linalg.pinv(np.asarray(self._by_change(q))))
        return np.concatenate([ct_q, of_change[:, self.nv :]], axis=-1)

    def change_cotangents(self, q: Array, qd: Array, cells: Float[Array, "batch x"]) -> Float[Array, "batch s"]:
        """Cotangents of changes of states from those of their cells."""
        directions = np.broadcast_to(self.directions(q, qd), (len(q), self.size, cells.shape[1]))
        return np.einsum("bdx,bx->bd", directions, cells)

    def moved(self, q: Array, qd: Array, change: Float[Array, "... s"]) -> tuple[Array, Array]:
        """States after a change; leading axes are free."""
        qd = qd + change[..., self.nv :]
        if self.is_flat:
            return q + change[..., : self.nv], qd
        flat = self._retracted(q.reshape(-1, self.nq), change[..., : self.nv].reshape(-1, self.nv))
        return np.asarray(flat).reshape(q.shape), qd

    def change(self, q: Array, qd: Array, to_q: Array, to_qd: Array) -> Float[Array, "... s"]:
        """The change that leads from states to others; leading axes are free."""
        if self.is_flat:
            dq = to_q - q
        else:
            flat = self._difference(q.reshape(-1, self.nq), to_q.reshape(-1, self.nq))
            dq = np.asarray(flat).reshape(*q.shape[:-1], self.nv)
        return np.concatenate([dq, to_qd - qd], axis=-1)

    def change_slopes(self, q: Array, to_q: Array) -> tuple[Float[Array, "... s s"], Float[Array, "... s s"]]:
        """How the change from states to others changes as the ones are moved, and as the others are."""
        identity = np.broadcast_to(np.eye(self.size), (*q.shape[:-1], self.size, self.size))
        if self.is_flat:
            return -identity, identity
        of_from, of_to = -identity, identity.copy()
        found = self._difference_slopes(q.reshape(-1, self.nq), to_q.reshape(-1, self.nq))
        for slopes, of_q in zip((of_from, of_to), found, strict=True):
            slopes[..., : self.nv, : self.nv] = np.asarray(of_q).reshape(*q.shape[:-1], self.nv, self.nv)
        return of_from, of_to

    def normalized(self, q: Float[Array, "batch nq"]) -> Float[Array, "batch nq"]:
        """Coordinates whose quaternions have unit length."""
        return q if self.is_flat else np.asarray(self._normalized(q))

    def velocities(self, q: Float[Array, "batch nq"], rate: Float[Array, "batch nq"]) -> Float[Array, "batch nv"]:
        """Velocities with which coordinates change at this rate, or nearly."""
        if self.is_flat:
            return rate
        return np.einsum("bvq,bq->bv", np.linalg.pinv(np.asarray(self._by_change(q))), rate)

    @cached_property
    def _template(self) -> Array:
        with jax.enable_x64(True):
            return self.form.pack(jax.tree.map(np.asarray, initial_carry(self.sim.initial_state())))

    @cached_property
    def remembers(self) -> bool:
        """Does a state hold something that depends on where it starts?"""
        with jax.enable_x64(True):
            return bool(jax.tree.leaves(self.sim.initial_state().aux["actuation"]))

    @cached_property
    def _begun(self):
        return _in_float64(lambda q, qd, t: self.form.pack_traced(initial_carry(self.sim.initial_state(q, qd, t))))

    @cached_property
    def _begun_slopes(self):
        def cells(q, qd, change):
            moved = coordinates.retract(self.model, q, change[: self.nv])
            return self.form.pack_traced(initial_carry(self.sim.initial_state(moved, qd + change[self.nv :])))

        return _in_float64(lambda q, qd: jax.jacfwd(cells, argnums=2)(q, qd, np.zeros(self.size)))

    @cached_property
    def _retracted(self):
        return _in_float64(lambda q, d: coordinates.retract(self.model, q, d))

    @cached_property
    def _normalized(self):
        return _in_float64(lambda q: coordinates.normalize(self.model, q))

    @cached_property
    def _difference(self):
        return _in_float64(lambda q, to: coordinates.difference(self.model, q, to))

    @cached_property
    def _difference_slopes(self):
        def moved(q, to, d, to_d):
            model = self.model
            return coordinates.difference(model, coordinates.retract(model, q, d), coordinates.retract(model, to, to_d))

        still = np.zeros(self.nv)
        return _in_float64(lambda q, to: jax.jacfwd(moved, argnums=(2, 3))(q, to, still, still))

    @cached_property
    def _by_change(self):
        """∂q/∂change of each configuration."""
        still = np.zeros(self.nv)
        return _in_float64(lambda q: jax.jacfwd(lambda d: coordinates.retract(self.model, q, d))(still))


def _in_float64(function):
    mapped = jax.jit(jax.vmap(function))

    def run(*arrays):
        # compiled for a few sizes only: solvers ask for ever fewer windows as these are done
        count = len(arrays[0])
        room = 1 << max(count - 1, 0).bit_length()
        padded = [np.concatenate([x, np.repeat(x[:1], room - count, axis=0)]) for x in arrays]
        with jax.enable_x64(True):
            return jax.tree.map(lambda x: np.asarray(x)[:count], mapped(*padded))

    return run
