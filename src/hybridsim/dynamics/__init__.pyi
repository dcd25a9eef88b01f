# The public names of hybridsim.dynamics: this file is their only list.

from .aba import forward_dynamics as forward_dynamics
from .crba import mass_matrix as mass_matrix
from .energy import centre_of_mass as centre_of_mass
from .energy import gravity_energy as gravity_energy
from .energy import kinetic_energy as kinetic_energy
from .energy import momentum as momentum
from .energy import spring_energy as spring_energy
from .energy import total_mass as total_mass
from .inverse_kinematics import IKSolution as IKSolution
from .inverse_kinematics import Target as Target
from .inverse_kinematics import inverse_kinematics as inverse_kinematics
from .jacobian import body_jacobian as body_jacobian
from .jacobian import frame_jacobian as frame_jacobian
from .jacobian import point_jacobian as point_jacobian
from .kinematics import Kinematics as Kinematics
from .kinematics import frame_pose as frame_pose
from .kinematics import kinematics as kinematics
from .kinematics import point_velocity as point_velocity
from .regressor import inertial_parameters as inertial_parameters
from .regressor import inertial_regressor as inertial_regressor
from .rnea import bias_torques as bias_torques
from .rnea import gravity_torques as gravity_torques
from .rnea import inverse_dynamics as inverse_dynamics
