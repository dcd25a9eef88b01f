"""MJCF joints and their placements: the same kinematics as in MuJoCo."""

import numpy as np

from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.rnea import inverse_dynamics
from hybridsim.model.joints import ElementaryJointType
from support.compare import assert_relative
from support.mjcf_files import load, world, write
from support.mujoco_import import assert_same_kinematics, import_both
from support.mujoco_twin import MujocoState
from support.random_models import random_state


def test_ref_is_absorbed_so_that_q_is_qpos(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body name="a" pos="1 2 3" euler="10 20 30">
              <joint name="h" type="hinge" axis="1 2 3" pos=".1 .2 .3" ref="40" springref="15" stiffness="2"/>
              <geom size=".1" pos=".2 0 0"/>
              <body name="b" pos="0 1 0">
                <joint name="s" type="slide" axis="0 1 1" ref=".3"/><geom size=".1"/></body>
            </body>"""
        ),
    )
    imported = import_both(path)
    assert_same_kinematics(imported, range(4))
    m, model = imported.mujoco, imported.model
    np.testing.assert_allclose(model.home, [np.deg2rad(40), 0.3])
    assert model.joint.rest[0] == m.qpos_spring[0]


def test_several_joints_on_one_body_become_a_chain(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body name="a" pos="1 0 0" axisangle="1 1 0 50">
              <joint name="h1" axis="1 0 0" pos="0 .1 0" ref="20" damping="1"/>
              <joint name="h2" axis="0 1 0" pos=".2 0 .1" ref="-30" armature=".5"/>
              <joint name="s" type="slide" axis="1 1 1" ref=".4"/>
              <geom size=".1" pos=".2 .1 0"/>
            </body>"""
        ),
    )
    imported = import_both(path)
    assert_same_kinematics(imported, range(4))
    model = imported.model
    assert model.topology.body_names == ("a:h1", "a:h2", "a")
    assert model.body.mass[0] == model.body.mass[1] == 0.0 < model.body.mass[2]
    np.testing.assert_array_equal(model.joint.damping, [1, 0, 0])
    np.testing.assert_array_equal(model.joint.armature, [0, 0.5, 0])


def test_ball_and_free_joints_with_anchors(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body name="base" pos="1 2 3" quat="1 2 3 4"><freejoint name="root"/><geom size=".1"/>
              <body name="arm" pos=".3 0 0" xyaxes="0 1 0 -1 0 0">
                <joint name="ball" type="ball" pos=".1 .2 .3" damping=".2" stiffness="3"/>
                <geom size=".1" pos="0 0 1"/>
              </body>
            </body>"""
        ),
    )
    imported = import_both(path)
    assert_same_kinematics(imported, range(4))
    m, model = imported.mujoco, imported.model
    assert model.topology.joint_types == (ElementaryJointType.FREE, ElementaryJointType.SPHERICAL)
    np.testing.assert_array_equal(model.home, m.qpos0)
    np.testing.assert_array_equal(model.joint.placement.p[0], 0.0)
    np.testing.assert_array_equal(model.joint.rest[7:], [1, 0, 0, 0])
    np.testing.assert_array_equal(model.joint.damping, [0] * 6 + [0.2] * 3)


def test_orientations_frames_and_replicate(tmp_path):
    path = write(
        tmp_path,
        world(
            """<frame pos="0 0 1" euler=".1 .2 .3"><body name="a" zaxis="1 1 1"><joint name="j" axis="0 1 0"/>
              <geom size=".1"/>
              <replicate count="3" offset=".5 0 0" euler="0 0 .4"><body name="leg" pos="0 1 0">
                <frame euler=".5 0 0"><joint name="hip" axis="1 0 0" pos="0 .1 0"/></frame>
                <geom type="capsule" size=".05" fromto="0 0 0 0 0 1"/>
              </body></replicate>
            </body></frame>""",
            before='<compiler angle="radian" eulerseq="ZYX"/>',
        ),
    )
    imported = import_both(path)
    assert_same_kinematics(imported)
    model = imported.model
    assert model.topology.body_names == ("a", "leg0", "leg1", "leg2")


def test_defaults_friction_limits_and_effort(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body childclass="small">
              <joint name="a" axis="1 0 0"/><joint name="b" class="big" axis="0 1 0"/>
              <joint name="c" type="slide" range="-.1 .2" limited="false" actuatorfrcrange="-5 5"/>
              <geom name="g" size=".1"/></body>""",
            before="""<default><joint damping="1" frictionloss=".3"/>
              <geom friction=".7 .1 .1" contype="2" conaffinity="5"/>
              <default class="small"><joint range="-30 60" armature=".1"/></default>
              <default class="big"><joint damping="4" range="-1 1"/></default></default>""",
        ),
    )
    model, _ = load(path)
    np.testing.assert_array_equal(model.joint.damping, [1, 4, 1])
    np.testing.assert_array_equal(model.joint.friction, [0.3] * 3)
    np.testing.assert_array_equal(model.joint.armature, [0.1, 0, 0.1])
    np.testing.assert_allclose(model.joint.lower, [np.deg2rad(-30), np.deg2rad(-1), -np.inf])
    np.testing.assert_array_equal(model.joint.effort_limit, [np.inf, np.inf, 5])
    info = model.geometry.infos[0]
    assert (info.group, info.mask, model.geometry.friction[0]) == (2, 5, 0.7)


def test_armature_of_a_free_joint_acts_as_in_mujoco(tmp_path):
    body = """<body name="a" pos="1 2 3"><joint name="root" type="free" armature=".5"/>
      <geom type="box" size=".1 .2 .3" pos=".1 .2 0"/>
      <body name="b" pos="0 0 .5"><joint name="j" axis="0 1 0" armature=".1"/><geom size=".1" pos=".3 0 0"/></body>
      </body>"""
    path = write(tmp_path, world(body))
    model, problems = load(path)
    assert not problems
    q, qd, _ = random_state(model, seed=3)
    tau = np.linspace(-1.0, 1.0, model.nv)
    qdd = MujocoState(model, import_both(path).mujoco, q, qd).accelerations(tau)
    assert_relative(inverse_dynamics(model, q, qd, qdd), tau, 1e-11, "torques")
    assert_relative(forward_dynamics(model, q, qd, tau), qdd, 1e-11, "accelerations")


def test_differences_of_free_joints_from_mujoco_are_reported(tmp_path):
    body = '<body><joint name="root" type="free" stiffness="1" frictionloss="2" damping="3"/><geom size=".1"/></body>'
    _, problems = load(write(tmp_path, world(body)))
    assert [(p.code, p.message.split()[0]) for p in problems] == [
        ("unsupported.joint.free", "stiffness"),
        ("unsupported.joint.free", "frictionloss"),
    ]
    assert "is ignored" in problems[0].message and "is ignored" not in problems[1].message


def test_a_body_with_the_name_of_a_massless_part(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body name="a"><joint name="x"/><joint name="y" axis="0 1 0"/><geom size=".1"/>
            <body name="a:x"><joint name="z"/><geom size=".1"/></body></body>"""
        ),
    )
    model, problems = load(path)
    assert not problems and model.topology.body_names == ("a:x_", "a", "a:x")
    assert_same_kinematics(import_both(path))
