"""Equations of motion of a workload as CasADi scalars: the articulated-body algorithm and inverse dynamics.

Structure that a general rigid-body library cannot exploit is exploited here, as this is the strongest peer:

- Hinge axes are coordinate axes, so rotations are 2×2 and zeros of offsets and axes are eliminated from the code.
- Accelerations are classical, not spatial, so linear velocities are not needed: the acceleration of a point c of a body
  is a + G c with G = [α]× + [ω]×[ω]×.
- Bias forces at qdd = 0 are computed first; the articulated-body recursion then only solves M qdd = τ − b.
"""

from collections.abc import Sequence

from benchmarks.workloads import GRAVITY, Body

Vector = list
"""Three scalars."""
Matrix = list
"""Three rows of three scalars."""


def cross(a: Vector, b: Vector) -> Vector:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def dot(a: Vector, b: Vector):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def add(*vectors: Vector) -> Vector:
    return [sum(entries[1:], entries[0]) for entries in zip(*vectors, strict=True)]


def scale(s, a: Vector) -> Vector:
    return [s * x for x in a]


def times(A: Matrix, x: Vector) -> Vector:
    return [dot(row, x) for row in A]


def transpose(A: Matrix) -> Matrix:
    return [list(row) for row in zip(*A, strict=True)]


def cross_columns(r: Vector, A: Matrix) -> Matrix:
    """[r]× A."""
    return transpose([cross(r, column) for column in transpose(A)])


class Hinge:
    """Rotation by q about coordinate axis k, from sin q and cos q."""

    def __init__(self, axis: str, s, c):
        self.k = "xyz".index(axis)
        self.i, self.j = (self.k + 1) % 3, (self.k + 2) % 3
        self.s, self.c = s, c

    def to_child(self, v: Vector) -> Vector:
        out = list(v)
        out[self.i] = self.c * v[self.i] + self.s * v[self.j]
        out[self.j] = self.c * v[self.j] - self.s * v[self.i]
        return out

    def to_parent(self, v: Vector) -> Vector:
        out = list(v)
        out[self.i] = self.c * v[self.i] - self.s * v[self.j]
        out[self.j] = self.c * v[self.j] + self.s * v[self.i]
        return out

    def matrix_to_parent(self, A: Matrix) -> Matrix:
        """R A Rᵀ; the 2×2 block normal to the axis takes six products instead of sixteen."""
        i, j, k, s, c = self.i, self.j, self.k, self.s, self.c
        shared = s * (A[i][i] - A[j][j]) + c * (A[i][j] + A[j][i])
        out = [[None] * 3 for _ in range(3)]
        out[i][i], out[j][j], out[k][k] = A[i][i] - s * shared, A[j][j] + s * shared, A[k][k]
        out[i][j], out[j][i] = c * shared - A[j][i], c * shared - A[i][j]
        out[i][k], out[j][k] = c * A[i][k] - s * A[j][k], s * A[i][k] + c * A[j][k]
        out[k][i], out[k][j] = c * A[k][i] - s * A[k][j], s * A[k][i] + c * A[k][j]
        return out


class Free:
    """Attitude of a free body, from an unnormalized quaternion (w, x, y, z)."""

    def __init__(self, w, x, y, z):
        t = 2 / (w * w + x * x + y * y + z * z)
        self.R = [
            [1 - t * (y * y + z * z), t * (x * y - w * z), t * (x * z + w * y)],
            [t * (x * y + w * z), 1 - t * (x * x + z * z), t * (y * z - w * x)],
            [t * (x * z - w * y), t * (y * z + w * x), 1 - t * (x * x + y * y)],
        ]

    def to_child(self, v: Vector) -> Vector:
        return times(transpose(self.R), v)

    def to_parent(self, v: Vector) -> Vector:
        return times(self.R, v)


class Mechanism:
    """Bodies at given joint coordinates; the methods are recursions over them.

    Args:
        bodies: bodies with symbolic or numeric parameters.
        joints: `Hinge` or `Free` joint of each body.
    """

    def __init__(self, bodies: Sequence[Body], joints: Sequence[Hinge | Free]):
        self.bodies, self.joints = bodies, joints
        first = 0
        self.dofs: list[slice] = []
        for joint in joints:
            width = 6 if isinstance(joint, Free) else 1
            self.dofs.append(slice(first, first + width))
            first += width
        self.nv = first

    def forces(self, qd: Sequence, qdd: Sequence | None) -> list[tuple[Vector, Vector]]:
        """Moment about the centre of mass and force on each body (inverse dynamics); `qdd` None stands for zero."""
        out, motion = [], []
        for body, joint, dof in zip(self.bodies, self.joints, self.dofs, strict=True):
            if isinstance(joint, Free):
                linear = qdd[dof][:3] if qdd is not None else [0, 0, 0]
                a = joint.to_child([linear[0], linear[1], linear[2] + GRAVITY])
                w, alpha = qd[dof][3:], qdd[dof][3:] if qdd is not None else [0, 0, 0]
            else:
                w_p, alpha_p, a_p, G_p = motion[body.parent] if body.parent >= 0 else _at_rest()
                a = joint.to_child(add(a_p, times(G_p, body.position)))
                w, alpha = joint.to_child(w_p), joint.to_child(alpha_p)
                rate = qd[dof.start]
                alpha[joint.i] = alpha[joint.i] + w[joint.j] * rate
                alpha[joint.j] = alpha[joint.j] - w[joint.i] * rate
                w[joint.k] = w[joint.k] + rate
                if qdd is not None:
                    alpha[joint.k] = alpha[joint.k] + qdd[dof.start]
            G = _gradient_of_acceleration(w, alpha)
            motion.append((w, alpha, a, G))
            I = body.inertia
            gyroscopic = [(I[2] - I[1]) * w[1] * w[2], (I[0] - I[2]) * w[2] * w[0], (I[1] - I[0]) * w[0] * w[1]]
            moment = add([I[n] * alpha[n] for n in range(3)], gyroscopic)
            out.append((moment, scale(body.mass, add(a, times(G, body.centre)))))
        return out

    def factorize(self) -> list[tuple]:
        """Factors of the mass matrix for `solve`: (U/d, 1/d) of a hinge, inverse blocks of a free body.

        Articulated inertias are accumulated from the leaves to the root: moment = I α + H a, force = Hᵀ α + M a. For a
        hinge about k, U is column k and d its diagonal entry.
        """
        total = [_rigid(body) for body in self.bodies]
        factors: list[tuple] = [()] * len(self.bodies)
        for n in reversed(range(len(self.bodies))):
            body, joint = self.bodies[n], self.joints[n]
            I, H, M = total[n]
            if isinstance(joint, Free):
                factors[n] = _free_factor(I, H, M)
                continue
            i, j, k = joint.i, joint.j, joint.k
            d = 1 / I[k][k]
            U = [I[i][k], I[j][k], *H[k]]
            K = [d * x for x in U]
            factors[n] = (K, d)
            if body.parent < 0:
                continue
            # articulated inertia across the joint: row and column k vanish
            Ia, Ha, Ma = _zeros(), _zeros(), _zeros()
            for a, b, x, y in ((i, i, 0, 0), (i, j, 0, 1), (j, j, 1, 1)):
                Ia[a][b] = Ia[b][a] = I[a][b] - K[x] * U[y]
            for a, x in ((i, 0), (j, 1)):
                Ha[a] = [H[a][b] - K[x] * U[2 + b] for b in range(3)]
            for a in range(3):
                for b in range(a, 3):
                    Ma[a][b] = Ma[b][a] = M[a][b] - K[2 + a] * U[2 + b]
            total[body.parent] = _add_inertias(total[body.parent], self._to_parent(n, Ia, Ha, Ma))
        return factors

    def _to_parent(self, n: int, I: Matrix, H: Matrix, M: Matrix):
        joint, r = self.joints[n], self.bodies[n].position
        I, H, M = (joint.matrix_to_parent(A) for A in (I, H, M))
        shifted = _sum(H, cross_columns(r, M))
        left = cross_columns(r, transpose(shifted))
        right = transpose(cross_columns(r, transpose(H)))
        I = _sum(I, left, right)
        return [[I[min(a, b)][max(a, b)] for b in range(3)] for a in range(3)], shifted, M

    def solve(self, factors: list[tuple], forces: list[tuple[Vector, Vector]] | None, tau: Sequence) -> list:
        """M⁻¹ (τ − b), where b are the generalized forces of `forces` (as from `forces`; None: zero)."""
        zero = [0, 0, 0]
        if forces is None:
            total = [(zero, zero) for _ in self.bodies]
        else:
            total = [(add(n, cross(body.centre, f)), f) for body, (n, f) in zip(self.bodies, forces, strict=True)]
        u = [None] * len(self.bodies)
        for n in reversed(range(len(self.bodies))):
            body, joint, dof = self.bodies[n], self.joints[n], self.dofs[n]
            moment, force = total[n]
            if isinstance(joint, Free):
                force_in_body = joint.to_child(tau[dof][:3])
                u[n] = ([t - x for t, x in zip(tau[dof][3:], moment, strict=True)], _subtract(force_in_body, force))
                continue
            torque = tau[dof.start]
            u[n] = torque - moment[joint.k]
            if body.parent < 0:
                continue
            K, _ = factors[n]
            moment = list(moment)
            moment[joint.i] = moment[joint.i] + u[n] * K[0]
            moment[joint.j] = moment[joint.j] + u[n] * K[1]
            moment[joint.k] = torque  # exactly, by the choice of u
            force = add(force, scale(u[n], K[2:]))
            moment, force = joint.to_parent(moment), joint.to_parent(force)
            moment = add(moment, cross(body.position, force))
            total[body.parent] = (add(total[body.parent][0], moment), add(total[body.parent][1], force))
        out, motion = [], []
        for n, (body, joint) in enumerate(zip(self.bodies, self.joints, strict=True)):
            if isinstance(joint, Free):
                alpha, a = _solve_free(factors[n], *u[n])
                out += [*joint.to_parent(a), *alpha]
            elif body.parent < 0:
                alpha, a = [0, 0, 0], [0, 0, 0]
                out.append(u[n] * factors[n][1])
                alpha[joint.k] = out[-1]
            else:
                alpha, a = motion[body.parent]
                a = joint.to_child(add(a, cross(alpha, body.position)))
                alpha = joint.to_child(alpha)
                K, d = factors[n]
                about_axis = u[n] * d - (dot(K[2:], a) + (K[0] * alpha[joint.i] + K[1] * alpha[joint.j]))
                out.append(about_axis - alpha[joint.k])
                alpha[joint.k] = about_axis
            motion.append((alpha, a))
        return out

    def power(self, rates: Sequence, forces: list[tuple[Vector, Vector]]):
        """φ: power of the body forces at joint rates `rates`."""
        total, motion = 0, []
        for body, joint, dof, (moment, force) in zip(self.bodies, self.joints, self.dofs, forces, strict=True):
            if isinstance(joint, Free):
                v, w = joint.to_child(rates[dof][:3]), rates[dof][3:]
            else:
                w, v = motion[body.parent] if body.parent >= 0 else ([0, 0, 0], [0, 0, 0])
                v = joint.to_child(add(v, cross(w, body.position)))
                w = joint.to_child(w)
                w[joint.k] = w[joint.k] + rates[dof.start]
            motion.append((w, v))
            total = total + dot(w, moment) + dot(add(v, cross(w, body.centre)), force)
        return total


def _at_rest():
    return [0, 0, 0], [0, 0, 0], [0, 0, GRAVITY], _zeros()


def _zeros() -> Matrix:
    return [[0, 0, 0] for _ in range(3)]


def _sum(*matrices: Matrix) -> Matrix:
    return [add(*rows) for rows in zip(*matrices, strict=True)]


def _add_inertias(a, b):
    return tuple(_sum(x, y) for x, y in zip(a, b, strict=True))


def _subtract(a: Vector, b: Vector) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]


def _gradient_of_acceleration(w: Vector, alpha: Vector) -> Matrix:
    """[α]× + [ω]×[ω]×."""
    xy, yz, zx = w[0] * w[1], w[1] * w[2], w[2] * w[0]
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    return [
        [-(yy + zz), xy - alpha[2], zx + alpha[1]],
        [xy + alpha[2], -(xx + zz), yz - alpha[0]],
        [zx - alpha[1], yz + alpha[0], -(xx + yy)],
    ]


def _rigid(body: Body) -> tuple[Matrix, Matrix, Matrix]:
    m, c, I = body.mass, body.centre, body.inertia
    mc = scale(m, c)
    J = [[I[a] if a == b else 0 for b in range(3)] for a in range(3)]
    for a in range(3):
        b, e = (a + 1) % 3, (a + 2) % 3
        J[a][a] = J[a][a] + (mc[b] * c[b] + mc[e] * c[e])
        J[a][b] = J[b][a] = -(mc[a] * c[b])
    H = [[0, -mc[2], mc[1]], [mc[2], 0, -mc[0]], [-mc[1], mc[0], 0]]
    return J, H, [[m, 0, 0], [0, m, 0], [0, 0, m]]


def _inverse_symmetric(A: Matrix) -> Matrix:
    """Inverse of a symmetric 3×3 matrix, by cofactors."""
    c00, c01, c02 = cross(A[1], A[2])
    _, c11, c12 = cross(A[2], A[0])
    c22 = A[0][0] * A[1][1] - A[0][1] * A[1][0]
    d = 1 / (A[0][0] * c00 + A[0][1] * c01 + A[0][2] * c02)
    return [[d * x for x in row] for row in ((c00, c01, c02), (c01, c11, c12), (c02, c12, c22))]


def _free_factor(I: Matrix, H: Matrix, M: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """M⁻¹, H M⁻¹ and the inverse of I − H M⁻¹ Hᵀ."""
    M_inverse = _inverse_symmetric(M)
    HM = [times(M_inverse, row) for row in H]
    schur = [_subtract(I[a], times(H, HM[a])) for a in range(3)]
    return M_inverse, HM, _inverse_symmetric(schur)


def _solve_free(factor: tuple[Matrix, Matrix, Matrix], n: Vector, f: Vector) -> tuple[Vector, Vector]:
    """α and a of I α + H a = n, Hᵀ α + M a = f."""
    M_inverse, HM, schur_inverse = factor
    alpha = times(schur_inverse, _subtract(n, times(HM, f)))
    return alpha, _subtract(times(M_inverse, f), times(transpose(HM), alpha))
