# The public names of hybridsim.spatial: this file is their only list.

from .rotation import matrix_from_axis_angle as matrix_from_axis_angle
from .rotation import matrix_from_quaternion as matrix_from_quaternion
from .rotation import matrix_from_rotation_vector as matrix_from_rotation_vector
from .rotation import quaternion_from_matrix as quaternion_from_matrix
from .rotation import rotation_vector_from_matrix as rotation_vector_from_matrix
from .transform import Pose as Pose
