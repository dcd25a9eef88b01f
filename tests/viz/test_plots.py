import matplotlib.pyplot as plt
import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.model.builder import ModelBuilder
from hybridsim.robots import double_pendulum
from hybridsim.viz.plots import _panels, plot_motion


def test_panels_follow_the_joints_not_their_names():
    """A hinge named `arm.q1` is not a quaternion."""
    solid = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    robot = ModelBuilder("robot").add_body("base", joint="root", kind="free", **solid)
    robot.add_body("arm", parent="base", joint="arm.q1", **solid)
    robot.add_body("hand", parent="arm", joint="slide", kind="prismatic", **solid)
    robot.add_body("finger", parent="hand", joint="follower", kind="prismatic", mimic="slide", **solid)
    model = robot.build()
    panels = _panels(model.topology, np.arange(9.0)[None], np.arange(8.0)[None])
    assert [panel.label.split("\n")[-1] for panel in panels] == [
        "position [m]",
        "quaternion",
        "position [rad, m]",
        "velocity in the body frame [m/s]",
        "angular velocity in the body frame [rad/s]",
        "velocity [rad/s, m/s]",
    ]
    assert panels[2].names == panels[5].names == ["arm.q1", "slide"]
    assert panels[2].values.tolist() == [[7.0, 8.0]] and panels[5].values.tolist() == [[6.0, 7.0]]
    assert panels[3].values.tolist() == [[3.0, 4.0, 5.0]] and panels[4].values.tolist() == [[0.0, 1.0, 2.0]]


def test_motion_is_plotted_and_unknown_formats_are_refused(tmp_path):
    model, t = double_pendulum(), np.linspace(0.0, 1.0, 20)
    path = plot_motion(model, t, np.zeros((20, 2)), np.zeros((20, 2)), tmp_path / "run.png")
    assert path.read_bytes().startswith(b"\x89PNG") and not plt.get_fignums()
    with pytest.raises(HybridsimError, match=r"the supported formats are \..*png"):
        plot_motion(model, t, np.zeros((20, 2)), np.zeros((20, 2)), tmp_path / "run.docx")
