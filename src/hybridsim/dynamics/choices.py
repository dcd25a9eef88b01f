"""The stages of actuation that are selected by name; listing them does not load JAX."""

from hybridsim.core.choices import ImportTable

ACTUATION_STAGES = ImportTable(
    {
        "command_range": "hybridsim.dynamics.actuation:ControlRange",
        "affine_actuator": "hybridsim.dynamics.actuation:AffineActuator",
        "force_range": "hybridsim.dynamics.actuation:ForceRange",
        "pd_servo": "hybridsim.dynamics.actuation:PDServo",
        "saturation": "hybridsim.dynamics.actuation:Saturation",
        "torque_speed_limit": "hybridsim.dynamics.actuation:TorqueSpeedLimit",
        "first_order_lag": "hybridsim.dynamics.actuation:FirstOrderLag",
        "transport_delay": "hybridsim.dynamics.actuation:TransportDelay",
        "series_elastic": "hybridsim.dynamics.actuation:SeriesElastic",
    }
)
"""Stages between command and force."""
