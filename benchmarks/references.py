"""Reference losses and gradients of the workloads, without torques.

W1: all engines tested agree to the digits given. W2 and W3: computed by the CasADi peer; MuJoCo's losses agree with
them to 1e-12 and its central differences to better than 1e-5.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reference:
    """Loss and gradients of one rollout."""

    loss: float
    tolerance: float
    """Largest allowed error, relative to the largest entry."""
    parameters: np.ndarray | None = None
    """Gradient of the loss with respect to the parameters."""
    q0: np.ndarray | None = None
    """Gradient with respect to the initial coordinates."""
    qd0: np.ndarray | None = None
    """Gradient with respect to the initial velocities."""


REFERENCES = {
    ("W1", 500): Reference(
        352.63102,
        tolerance=2e-6,  # the digits given
        parameters=np.array([-269.389, 334.600, -1.981, -102.494, -872.53, -5648.55]),
        q0=np.array([608.766, 281.494]),
    ),
    ("W2", 50): Reference(
        122.0658855382,
        tolerance=1e-8,
        parameters=np.ravel(
            [
                [-0.0417996869647, -1.8942e-06, 5.82207331e-05, 5.83034397e-05, 5.83035499e-05],
                [2.4105152830427, 0.0063756059360, 8.9527486e-06, 1.21156e-08, 1.59e-11],
            ]
        ),
        q0=np.array([156.2269917853, 0.8427727979, 0.0285017055, 0.0009566844, 0.0000318675]),
    ),
    ("W2", 500): Reference(
        713.8008832428,
        tolerance=1e-8,
        parameters=np.ravel(
            [
                [-52.867715488, 31.617520296, 8.239389676, 6.128625268, 6.404332119],
                [315.533460946, 43.965528159, 18.274321712, 7.366456161, 0.427002514],
            ]
        ),
        q0=np.array([1002.770506514, 335.340169036, 92.945317049, 31.851360460, 18.726284954]),
    ),
    # chaotic: rounding errors of a step change the tenth digit of these gradients
    ("W2", 5000): Reference(
        37393.4501723,
        tolerance=1e-7,
        parameters=np.ravel(
            [
                [-33072.607809, 59337.913735, 95198.421441, -124806.956097, -3011.068487],
                [-22380.096616, -4827.984302, -226485.320662, 67922.567943, 68308.206055],
            ]
        ),
        q0=np.array([-282707.505536, -199976.728886, -144876.759571, -126519.025997, -96917.115935]),
    ),
    ("W3", 50): Reference(
        57.946888867713,
        tolerance=1e-8,
        qd0=np.ravel(
            [
                [-0.0345972411, 0.0018345498, 1.5318363216],
                [0.0006240309, 0.0092547976, -0.0001033416],
                [-0.0263543678, 0.0436908233, 0.0027193941],
                [0.0321479553, 0.0430829180, 0.0028120449],
                [-0.0093558086, 0.0293875934, 0.0040734153],
                [0.0131972576, 0.0285952040, 0.0041534172],
            ]
        ),
    ),
}
"""By workload and number of steps."""
