"""Pinocchio: forward dynamics (ABA) and its analytical derivatives, called from a C++ loop.

The headers of the pip packages pin and cmeel-eigen are compiled with a small driver, without Python overhead and with
all optimizations. Derivatives are the full Jacobians of the accelerations with respect to q, qd and τ, not with respect
to model parameters.
"""

import ctypes
import functools
import importlib.util
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import (
    Row,
    Timing,
    best,
    check,
    command_line,
    exit_missing,
    require,
    require_program,
    row,
    use_one_thread,
)
from benchmarks.peers.mujoco_reference import accelerations
from benchmarks.workloads import CHAIN_LENGTHS, W3, Workload, chain, random_states

PEER = "Pinocchio"
COMPILER = ("g++", "-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-w")
BOOST = (
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
)
"""Pinocchio has more joint types than Boost's preprocessed headers support."""
STATES = 64
"""Number of different states in repeated calls."""


@functools.cache
def library() -> ctypes.CDLL:
    """Compile the driver, once for all mechanisms; takes about a minute."""
    spec = importlib.util.find_spec("pinocchio")
    include = Path(spec.origin).parents[4] / "include" if spec and spec.origin else Path()
    if not (include / "eigen3").is_dir():
        exit_missing("this peer needs the headers of Pinocchio and Eigen: pip install pin cmeel-eigen")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(__file__).with_name("pinocchio_driver.cpp"), f"{folder}/driver.so"
        files = [f"-I{include}", f"-I{include / 'eigen3'}", "-shared", "-fPIC", str(source), "-o", target]
        subprocess.run([*COMPILER, *BOOST, *files], check=True)
        driver = ctypes.CDLL(target)
    driver.create.restype = ctypes.c_void_p
    return driver


def create(w: Workload) -> ctypes.c_void_p:
    """The workload's mechanism as a Pinocchio model."""
    bodies = w.nominal_bodies()
    integers = [[b.parent for b in bodies], [["x", "y", "z", "free"].index(b.joint) for b in bodies]]
    values = [[getattr(b, name) for b in bodies] for name in ("position", "mass", "centre", "inertia")]
    arrays = [np.array(a, np.int64) for a in integers] + [np.array(a, np.float64) for a in values]
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]
    return ctypes.c_void_p(library().create(ctypes.c_long(len(bodies)), *pointers))


def measure(w: Workload) -> list[Row]:
    """Cost of one call of ABA and of its derivatives."""
    version = require("pin", "cmeel-eigen")
    require_program(COMPILER[0])
    functions, robot = library(), create(w)
    q, qd, tau = random_states(w, STATES)
    states = [np.ascontiguousarray(a) for a in _in_body_frame(w, q, qd, tau)]
    out, calls = np.zeros_like(qd), STATES * max(1, 1000 // w.nv**2)
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*states, out)]
    expected = accelerations(w, q, qd, tau)
    rows = []
    for name, what in (("aba", "value"), ("aba_derivatives", "Jacobians")):
        call = functools.partial(
            getattr(functions, name), robot, ctypes.c_long(calls), ctypes.c_long(STATES), *pointers
        )
        call()
        error = check(name, _accelerations_in_world(w, q, qd, out), expected, 1e-9)
        total = best(call)
        note = f"mean of {calls} calls; accelerations equal to MuJoCo's to {error:.0e}; {' '.join(COMPILER[:4])}"
        rows.append(row(PEER, version, w.name, what, Timing(total.cpu / calls, total.wall / calls), note=note))
    functions.destroy(robot)
    return rows


def _rotations(q: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(q[:, [4, 5, 6, 3]]).as_matrix()


def _in_body_frame(w: Workload, q, qd, tau):
    """States in Pinocchio's convention: quaternion last, linear velocity and force of a free body in the body frame."""
    q, qd, tau = q.copy(), qd.copy(), tau.copy()
    if w.is_free:
        R = _rotations(q)
        q[:, 3:7] = q[:, [4, 5, 6, 3]]
        for x in (qd, tau):
            x[:, :3] = np.einsum("nij,ni->nj", R, x[:, :3])
    return q, qd, tau


def _accelerations_in_world(w: Workload, q, qd, qdd):
    """World-frame accelerations from Pinocchio's body-frame ones."""
    if not w.is_free:
        return qdd
    R, out = _rotations(q), qdd.copy()
    v = np.einsum("nij,ni->nj", R, qd[:, :3])
    out[:, :3] = np.einsum("nij,nj->ni", R, qdd[:, :3] + np.cross(qd[:, 3:6], v))
    return out


PARTS = {"W3": lambda: measure(W3), **{f"W4-{n}": lambda n=n: measure(chain(n)) for n in CHAIN_LENGTHS}}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.peers.pinocchio_aba", PARTS)
