"""Actuation and its stages: servos, limits, lags, delays and springs between command and joint torque."""

from hybridsim.dynamics.actuation import AbstractStage as AbstractStage
from hybridsim.dynamics.actuation import Actuation as Actuation
from hybridsim.dynamics.actuation import ActuatorMotion as ActuatorMotion
from hybridsim.dynamics.actuation import AffineActuator as AffineActuator
from hybridsim.dynamics.actuation import ControlRange as ControlRange
from hybridsim.dynamics.actuation import FirstOrderLag as FirstOrderLag
from hybridsim.dynamics.actuation import ForceRange as ForceRange
from hybridsim.dynamics.actuation import PDServo as PDServo
from hybridsim.dynamics.actuation import Saturation as Saturation
from hybridsim.dynamics.actuation import SeriesElastic as SeriesElastic
from hybridsim.dynamics.actuation import TorqueSpeedLimit as TorqueSpeedLimit
from hybridsim.dynamics.actuation import TransportDelay as TransportDelay
