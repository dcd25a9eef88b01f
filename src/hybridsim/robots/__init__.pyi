# The public names of hybridsim.robots: this file is their only list.

from .arm import DH as DH
from .arm import arm_from_dh as arm_from_dh
from .arm import four_joint_arm as four_joint_arm
from .built_in import BUILT_IN as BUILT_IN
from .cartpole import cartpole as cartpole
from .cartpole import double_cartpole as double_cartpole
from .free import ball as ball
from .free import cube as cube
from .pendulum import acrobot as acrobot
from .pendulum import double_pendulum as double_pendulum
from .pendulum import n_link_pendulum as n_link_pendulum
from .pendulum import pendulum as pendulum
from .pusher import pusher as pusher
from .quadruped import quadruped as quadruped
from .swimmer import swimmer as swimmer
