"""MJCF import: compared with MuJoCo itself, feature by feature and on real models."""

import importlib.util
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.core.errors import ModelError, Severity
from hybridsim.io import mjcf_document
from hybridsim.io.mjcf import read_mjcf
from hybridsim.model.assemble import assemble
from hybridsim.model.geometry import Shape
from hybridsim.model.joints import JointType
from hybridsim.model.merge import merge_fixed
from hybridsim.spatial.transform import Pose


def _package_folder(name: str) -> Path | None:
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None


SUITE = (_package_folder("dm_control") or Path()) / "suite"
BULLET = _package_folder("pybullet_data")
SUITE_MODELS = (
    "acrobot ball_in_cup cartpole cheetah finger fish hopper humanoid humanoid_CMU manipulator pendulum "
    "point_mass quadruped reacher stacker swimmer walker"
)
BULLET_MODELS = (
    "ant humanoid humanoid_symmetric_no_ground inverted_double_pendulum inverted_pendulum pusher reacher "
    "striker thrower capsule cylinder hello_mjcf"
)
REAL_MODELS = [
    *(pytest.param(SUITE / f"{name}.xml", id=f"suite-{name}") for name in SUITE_MODELS.split()),
    *(
        pytest.param(
            (BULLET or Path()) / "mjcf" / f"{name}.xml",
            id=f"bullet-{name}",
            marks=pytest.mark.skipif(BULLET is None, reason="pybullet has no wheel for this Python"),
        )
        for name in BULLET_MODELS.split()
    ),
]


def write(folder: Path, body: str, name: str = "model.xml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(body)
    return path


def world(content: str, before: str = "", after: str = "") -> str:
    return f"<mujoco>\n{before}\n<worldbody>\n{content}\n</worldbody>\n{after}\n</mujoco>"


def load(path: Path, merge: bool = True):
    spec, problems = read_mjcf(path)
    assert not [p for p in problems if p.severity is Severity.ERROR]
    return assemble(merge_fixed(spec)[0] if merge else spec), problems


def motion(kind: JointType, axis, anchor, q) -> Pose:
    match kind:
        case JointType.FIXED:
            return Pose(np.eye(3), np.zeros(3))
        case JointType.PRISMATIC:
            return Pose(np.eye(3), q[0] * axis)
        case JointType.FREE:
            return Pose(Rotation.from_quat(q[3:], scalar_first=True).as_matrix(), q[:3])
    turn = Rotation.from_rotvec(q[0] * axis) if kind is JointType.REVOLUTE else Rotation.from_quat(q, scalar_first=True)
    R = turn.as_matrix()
    return Pose(R, anchor - R @ anchor)


def body_poses(model, q) -> dict[str, Pose]:
    topology, joint = model.topology, model.joint
    poses: list[Pose] = []
    for i, kind in enumerate(topology.joint_types):
        X_PJ = Pose(joint.placement.R[i], joint.placement.p[i])
        X_JB = motion(kind, joint.axis[i], joint.anchor[i], q[slice(*topology.q_slices[i])])
        X_WP = poses[topology.parents[i]] if topology.parents[i] >= 0 else Pose(np.eye(3), np.zeros(3))
        poses.append(X_WP @ X_PJ @ X_JB)
    return dict(zip(topology.body_names, poses, strict=True))


def reference(path: Path):
    """MuJoCo's own reading of the file; MjModel.from_xml_path would write a log into the working folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mujoco.MjSpec.from_file(str(path)).compile()


def random_state(m, seed: int):
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(m)
    qpos = m.qpos0.copy()
    mujoco.mj_integratePos(m, qpos, rng.normal(size=m.nv), 1.0)
    data.qpos, data.qvel = qpos, rng.normal(size=m.nv)
    data.ctrl = 2.0 * rng.normal(size=m.nu)
    mujoco.mj_forward(m, data)
    return data


def assert_same_kinematics(path: Path, seeds=(0, 1)):
    """Poses of all bodies, sites and shapes in random configurations."""
    m = reference(path)
    model, _ = load(path, merge=False)
    merged, _ = load(path)
    assert model.nq == merged.nq == m.nq and model.nv == m.nv
    for seed in seeds:
        data = random_state(m, seed)
        poses = body_poses(model, data.qpos)
        scale = 1.0 + np.abs(data.xpos).max()
        for b in range(1, m.nbody):
            name = m.body(b).name or f"body{b}"
            np.testing.assert_allclose(poses[name].p, data.xpos[b], rtol=0, atol=1e-12 * scale)
            np.testing.assert_allclose(poses[name].R, data.xmat[b].reshape(3, 3), rtol=0, atol=1e-12)
        after_merging = body_poses(merged, data.qpos)
        for name, pose in after_merging.items():
            np.testing.assert_allclose(pose.p, poses[name].p, rtol=0, atol=1e-12 * scale)
        for g, info in enumerate(merged.geometry.infos):
            if info.shape is Shape.MESH:
                continue
            carrier = merged.topology.body_names[info.body] if info.body >= 0 else None
            X_WB = after_merging[carrier] if carrier else Pose(np.eye(3), np.zeros(3))
            at = X_WB.point(merged.geometry.placement.p[g])
            index = m.geom(info.name).id if not info.name.startswith("geom") else int(info.name[4:])
            np.testing.assert_allclose(at, data.geom_xpos[index], rtol=0, atol=1e-12 * scale)
    return m, model, merged


@pytest.mark.parametrize("path", REAL_MODELS)
def test_real_models_have_the_same_kinematics_masses_and_names(path):
    m, model, merged = assert_same_kinematics(path)
    joint_names = [m.joint(j).name or f"joint{j}" for j in range(m.njnt)]
    assert [n for n in model.topology.joint_names if not n.endswith("_fixed")] == joint_names
    assert [n for n in model.topology.body_names if ":" not in n] == [
        m.body(b).name or f"body{b}" for b in range(1, m.nbody)
    ]
    np.testing.assert_allclose(model.body.mass.sum(), m.body_mass.sum(), rtol=1e-14)
    moving = m.body_weldid != 0
    np.testing.assert_allclose(merged.body.mass.sum(), m.body_mass[moving].sum(), rtol=1e-13)
    kinds = {0: JointType.FREE, 1: JointType.SPHERICAL, 2: JointType.PRISMATIC, 3: JointType.REVOLUTE}
    for name, kind in zip(model.topology.joint_names, model.topology.joint_types, strict=True):
        if name in joint_names:
            assert kind is kinds[int(m.jnt_type[joint_names.index(name)])]
    for b in range(1, m.nbody):
        i = model.topology.body_index(m.body(b).name or f"body{b}")
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, m.body_iquat[b])
        inertia = R.reshape(3, 3) @ np.diag(m.body_inertia[b]) @ R.reshape(3, 3).T
        entries = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        np.testing.assert_allclose(model.body.inertia[i], entries, rtol=0, atol=1e-13 * m.body_inertia[b].max())
        np.testing.assert_array_equal(model.body.com[i], m.body_ipos[b])
        assert model.body.mass[i] == m.body_mass[b]
    np.testing.assert_array_equal(model.home, m.qpos0)


@pytest.mark.parametrize("path", REAL_MODELS)
def test_real_models_have_the_same_joint_parameters_and_actuators(path):
    m = reference(path)
    model, problems = load(path)
    off = m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    np.testing.assert_array_equal(model.joint.damping, m.dof_damping)
    np.testing.assert_array_equal(model.joint.armature, m.dof_armature)
    np.testing.assert_array_equal(model.joint.friction, 0.0 if off else m.dof_frictionloss)
    hinges = [j for j in range(m.njnt) if m.jnt_type[j] >= 2]
    dofs = m.jnt_dofadr[hinges]
    limited = (m.jnt_limited[hinges] != 0) & (not off)
    np.testing.assert_array_equal(model.joint.lower[dofs], np.where(limited, m.jnt_range[hinges, 0], -np.inf))
    np.testing.assert_array_equal(model.joint.upper[dofs], np.where(limited, m.jnt_range[hinges, 1], np.inf))
    np.testing.assert_array_equal(model.joint.stiffness[dofs], m.jnt_stiffness[hinges])
    np.testing.assert_array_equal(model.joint.rest[model_q(model, hinges, m)], m.qpos_spring[m.jnt_qposadr[hinges]])
    assert_same_actuation(m, model)
    left_out = [p for p in problems if p.code == "unsupported.actuator"]
    assert model.nu + len(left_out) == m.nu
    assert all(p.line > 0 and p.file for p in problems if p.code.startswith("unsupported"))


def model_q(model, joints, m) -> list[int]:
    names = [m.joint(j).name or f"joint{j}" for j in joints]
    return [model.topology.q_slices[model.topology.joint_index(name)][0] for name in names]


def assert_same_actuation(m, model):
    """The force law of `Actuators`, on the actuators that are modelled, against MuJoCo's actuator forces."""
    actuator = model.actuator
    names = [m.actuator(a).name or f"actuator{a}" for a in range(m.nactuator)]
    for seed in range(3):
        data = random_state(m, seed)
        for k, name in enumerate(actuator.names):
            a = names.index(name)
            joint = actuator.joints[k]
            q = data.qpos[model.topology.q_slices[joint][0]]
            qd = data.qvel[model.topology.v_slices[joint][0]]
            u = np.clip(data.ctrl[m.actuator_ctrladr[a]], actuator.control_lower[k], actuator.control_upper[k])
            length, speed = actuator.gear[k] * q, actuator.gear[k] * qd
            force = actuator.gain[k] * u + actuator.bias[k] @ [1.0, length, speed]
            force = np.clip(force, actuator.force_lower[k], actuator.force_upper[k])
            np.testing.assert_allclose(force, data.actuator_force[a], rtol=1e-13, atol=1e-13)


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
    m, model, _ = assert_same_kinematics(path, range(4))
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
    _, model, _ = assert_same_kinematics(path, range(4))
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
    m, model, _ = assert_same_kinematics(path, range(4))
    assert model.topology.joint_types == (JointType.FREE, JointType.SPHERICAL)
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
    _, model, _ = assert_same_kinematics(path)
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


def test_inertials_keep_the_digits_of_the_file(tmp_path):
    full = "0.1 0.2 0.25 0.01 -0.02 0.03"
    path = write(
        tmp_path,
        world(
            f"""<body name="a"><joint name="j"/>
              <inertial pos=".1 .2 .3" mass="1.5" fullinertia="{full}"/></body>
            <body name="b"><joint name="k"/>
              <inertial pos="0 0 0" mass="2" diaginertia=".1 .2 .25" euler="10 20 30"/></body>
            <body name="c"><joint name="l"/><geom type="box" size=".1 .2 .3" mass="3"/></body>"""
        ),
    )
    model, _ = load(path)
    np.testing.assert_array_equal(model.body.inertia[0], [float(x) for x in full.split()])
    R = Rotation.from_euler("XYZ", [10, 20, 30], degrees=True).as_matrix()
    turned = R @ np.diag([0.1, 0.2, 0.25]) @ R.T
    np.testing.assert_allclose(model.body.inertia[1], turned[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], atol=1e-15)
    np.testing.assert_allclose(model.body.inertia[2, :3], [0.13, 0.1, 0.05])


ACTUATED = """<body name="a"><joint name="h" actuatorfrcrange="-50 50"/><geom size=".1"/>
  <body name="b" pos="1 0 0"><joint name="s" type="slide" axis="1 0 0"/><geom size=".1"/></body>
  <body name="c" pos="2 0 0"><joint name="ball" type="ball"/>
  <geom size=".1"/><site name="tip"/></body></body>"""


def test_actuator_force_laws(tmp_path):
    path = write(
        tmp_path,
        world(
            ACTUATED,
            after="""<actuator>
              <motor name="m" joint="h" gear="20" ctrlrange="-1 1" forcerange="-15 15"/>
              <position name="p" joint="s" kp="30" kv="2" gear="-3"/>
              <position name="d" joint="s" kp="30" dampratio="1"/>
              <velocity joint="h" kv="4" ctrlrange="-.5 .5"/>
              <general name="g" joint="s" gaintype="affine" gainprm="7" biastype="affine" biasprm="1 -2 -3"
                gear="2"/>
              <general name="free" jointinparent="h" gainprm="3"/>
            </actuator>""",
        ),
    )
    m = reference(path)
    model, _ = load(path)
    assert model.actuator.names == ("m", "p", "d", "actuator3", "g", "free")
    assert_same_actuation(m, model)


def test_actuators_that_are_not_modelled_are_left_out_by_name_and_line(tmp_path):
    path = write(
        tmp_path,
        world(
            ACTUATED,
            after="""<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon>
<actuator>
<motor name="tendon" tendon="t"/>
<motor name="site" site="tip"/>
<motor name="ball" joint="ball"/>
<general name="filter" joint="h" dyntype="filter" dynprm=".1"/>
<muscle name="muscle" joint="h" lengthrange="0 1"/>
<damper name="damper" joint="h" kv="1" ctrlrange="0 1"/>
<adhesion name="glue" body="a" gain="1" ctrlrange="0 1"/>
<motor name="off" joint="h" group="3"/>
<motor name="good" joint="h"/>
</actuator>""",
            before='<option actuatorgroupdisable="3"/>',
        ),
    )
    model, problems = load(path)
    assert model.actuator.names == ("good",)
    left_out = {p.message.split("'")[1]: p for p in problems if p.code == "unsupported.actuator"}
    assert list(left_out) == ["tendon", "site", "ball", "filter", "muscle", "damper", "glue", "off"]
    first = path.read_text().splitlines().index('<motor name="tendon" tendon="t"/>') + 1
    assert [p.line for p in left_out.values()] == list(range(first, first + 8))
    reasons = ["tendon", "site", "ball joint", "filter", "muscle", "not constant", "body", "group 3"]
    assert all(reason in p.message for reason, p in zip(reasons, left_out.values(), strict=True))


def test_passive_without_actuators(tmp_path):
    model, _ = load(write(tmp_path, world('<body><joint name="j"/><geom size=".1"/></body>')))
    assert model.nu == 0


def test_contact_pairs_exclusions_sites_and_keyframe(tmp_path):
    path = write(
        tmp_path,
        world(
            """<geom name="floor" type="plane" size="1 1 1"/>
            <body name="a"><joint name="j"/><geom name="ga" size=".1"/>
              <site name="tip" pos="0 0 1" euler="0 90 0"/></body>
            <body name="b"><joint name="k"/><geom name="gb" size=".1"/><site name="fix"/>
              <body name="fix" pos="0 1 0"><geom size=".1"/><site name="tool" pos="1 0 0"/></body></body>""",
            after="""<contact><pair geom1="ga" geom2="gb"/><exclude body1="a" body2="fix"/></contact>
            <keyframe><key name="other" qpos="9 9"/><key name="home" qpos="1 2"/></keyframe>""",
            before='<option gravity="0 1 -5" timestep=".004"/>',
        ),
    )
    model, problems = load(path)
    assert model.geometry.explicit_pairs == (("ga", "gb"),)
    assert model.geometry.excluded_pairs == (("a", "b"),)
    np.testing.assert_array_equal(model.home, [1, 2])
    np.testing.assert_array_equal(model.gravity, [0, 1, -5])
    assert model.timestep == 0.004
    assert model.topology.frame_names == ("fix", "tip", "fix_site", "tool")
    np.testing.assert_array_equal(model.frame_placement.p, [[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0]])
    assert [i.shape for i in model.geometry.infos][:2] == [Shape.PLANE, Shape.SPHERE]
    assert [p.code for p in problems] == ["unsupported.key"]


def test_flags_act_on_the_values(tmp_path):
    joint = '<joint name="j" damping="1" stiffness="2" frictionloss="3" range="-1 1"/>'
    content = f'<body>{joint}<geom size=".1"/></body>'
    off = ["gravity", "limit", "damper", "spring", "frictionloss", "contact", "clampctrl"]
    flags = " ".join(f'{flag}="disable"' for flag in off)
    path = write(
        tmp_path,
        world(
            content,
            before=f"<option><flag {flags}/></option>",
            after='<actuator><motor joint="j" ctrlrange="-1 1"/></actuator>',
        ),
    )
    model, problems = load(path)
    assert not problems
    joint = model.joint
    for values in (model.gravity, joint.damping, joint.stiffness, joint.friction):
        np.testing.assert_array_equal(values, 0.0)
    assert joint.upper[0] == model.actuator.control_upper[0] == np.inf
    assert model.geometry.infos[0].group == model.geometry.infos[0].mask == 0
    switched_off = world(
        content, '<option><flag actuation="disable"/></option>', '<actuator><motor joint="j"/></actuator>'
    )
    assert load(write(tmp_path, switched_off))[0].nu == 0


def test_nameless_elements_get_stable_unique_names(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body><joint/><geom size=".1"/></body>
            <body name="body1"><joint name="joint0"/><geom name="geom0" size=".1"/><site/></body>""",
            after='<actuator><motor joint="joint0"/></actuator>',
        ),
    )
    model, _ = load(path)
    assert model.topology.body_names == ("body1_", "body1")
    assert model.topology.joint_names == ("joint0_", "joint0")
    assert [info.name for info in model.geometry.infos] == ["geom0_", "geom0"]
    assert model.topology.frame_names == ("site0",)
    assert model.actuator.names == ("actuator0",)


def test_mocap_bodies_stand_still_with_a_warning(tmp_path):
    path = write(tmp_path, world('<body name="hand" mocap="true"/><body><joint/><geom size=".1"/></body>'))
    model, problems = load(path)
    assert model.topology.frame_names == ("hand",)
    assert [(p.code, p.line) for p in problems] == [("unsupported.mocap", 4)]


UNSUPPORTED = """<mujoco>
<option density="1.2" solver="CG" iterations="5"><flag filterparent="disable"/></option>
<default><geom solref=".01 1" margin="0"/></default>
<worldbody>
<light/><camera name="eye"/>
<body name="a" gravcomp="1">
<joint name="j" margin=".1" damping="1 2"/>
<geom size=".1" condim="1"/>
</body>
<body name="b" pos="1 0 0">
<joint name="ball" type="ball" range="0 30"/>
<geom size=".1"/>
</body>
<composite type="cable" count="5 1 1" size=".2" curve="s 0 0" initial="none"><geom type="capsule"
 size=".01"/></composite>
</worldbody>
<equality>
<connect name="loop" body1="a" body2="b" anchor="0 0 0"/>
<joint joint1="j"/>
</equality>
<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
<sensor><jointpos joint="j"/><jointvel joint="j"/></sensor>
</mujoco>"""


def test_what_is_not_modelled_is_listed_by_name_and_line(tmp_path):
    path = write(tmp_path, UNSUPPORTED)
    _, problems = load(path)
    assert all(p.severity is Severity.WARNING and p.file == str(path) and p.fix for p in problems)
    found = {(p.code, p.line) for p in problems}
    assert found == {
        ("unsupported.option.fluid", 2),
        ("unsupported.option.solver", 2),
        ("unsupported.flag.contact", 2),
        ("unsupported.geom.contact", 3),
        ("unsupported.body.gravcomp", 6),
        ("unsupported.joint.contact", 7),
        ("unsupported.joint.polynomial", 7),
        ("unsupported.joint.range", 11),
        ("unsupported.composite", 14),
        ("unsupported.connect", 18),
        ("unsupported.joint", 19),
        ("unsupported.fixed", 21),
        ("unsupported.sensor", 22),
    }
    text = "\n".join(map(str, problems))
    for fragment in ("<connect> 'loop'", "solver='CG', iterations='5'", "also on lines 8", "2 sensors"):
        assert fragment in text


def test_meshes_are_placed_as_in_their_own_file(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.creation.box((1, 2, 3))
    mesh.apply_translation((0.5, 0.3, 0.2))
    mesh.vertices[0] += (0.3, -0.4, 0.2)
    (tmp_path / "meshes").mkdir()
    mesh.export(tmp_path / "meshes" / "part.obj")
    path = write(
        tmp_path,
        world(
            """<body name="a"><joint/>
              <geom name="g" type="mesh" mesh="part" pos=".1 .2 .3" euler="40 0 10"/></body>""",
            before="""<compiler meshdir="meshes"/><asset><mesh file="part.obj" scale="1 2 .5"/>
            <texture name="t" type="2d" file="missing.png"/><material name="m" texture="t"/></asset>""",
        ),
    )
    model, problems = load(path)
    assert not problems
    info, geometry = model.geometry.infos[0], model.geometry
    assert info.shape is Shape.MESH and Path(info.mesh_file) == (tmp_path / "meshes" / "part.obj").resolve()
    np.testing.assert_array_equal(geometry.size[0], [1, 2, 0.5])
    R = Rotation.from_euler("XYZ", [40, 0, 10], degrees=True).as_matrix()
    np.testing.assert_allclose(geometry.placement.R[0], R, atol=1e-6)
    np.testing.assert_allclose(geometry.placement.p[0], [0.1, 0.2, 0.3], atol=1e-6)
    np.testing.assert_allclose(model.body.com[0], R @ (mesh.center_mass * [1, 2, 0.5]) + [0.1, 0.2, 0.3], atol=1e-6)


def test_includes_are_spliced_in_and_keep_their_lines(tmp_path):
    write(
        tmp_path,
        '<include>\n<body name="b"><joint name="k" margin="1"/>\n<geom size=".1"/></body>\n</include>',
        "parts/arm.xml",
    )
    write(tmp_path, '<mujoco><include file="inner.xml"/></mujoco>', "parts/outer.xml")
    write(tmp_path, '<mujoco><option gravity="0 0 -1"/></mujoco>', "parts/inner.xml")
    path = write(
        tmp_path,
        world(
            '<body name="a"><joint name="j"/><geom size=".1"/><include file="parts/arm.xml"/></body>',
            '<include file="parts/outer.xml"/>',
        ),
    )
    model, problems = load(path)
    assert model.topology.body_names == ("a", "b") and model.gravity[2] == -1
    assert [(Path(p.file).name, p.line) for p in problems] == [("arm.xml", 2)]


def test_attached_models_keep_their_lines(tmp_path):
    write(
        tmp_path,
        '<mujoco>\n<worldbody>\n<body name="hand">\n<joint name="grip" margin="1"/>\n<geom size=".1"/></body>'
        "</worldbody></mujoco>",
        "hand.xml",
    )
    path = write(
        tmp_path,
        world(
            '<body name="a"><joint/><geom size=".1"/><attach model="h" body="hand" prefix="left_"/></body>',
            '<asset><model name="h" file="hand.xml"/></asset>',
        ),
    )
    spec, problems = read_mjcf(path)
    assert [b.name for b in spec.bodies] == ["a", "left_hand"]
    source = spec.bodies[1].joint.source
    assert (Path(source.file).name, source.line) == ("hand.xml", 4)
    assert [(p.code, Path(p.file).name, p.line) for p in problems] == [("unsupported.joint.contact", "hand.xml", 4)]


def test_attached_models_count_with_all_their_elements(tmp_path):
    write(
        tmp_path,
        world('<body name="b"><replicate count="900"><geom size=".1"/></replicate></body>'),
        "part.xml",
    )
    attach = '<replicate count="900"><attach model="p" body="b" prefix="x"/></replicate>'
    path = write(tmp_path, world(attach, '<asset><model name="p" file="part.xml"/></asset>'))
    assert [(p.code, p.line) for p in refused(path)] == [("mjcf.too_large", 4)]
    write(tmp_path, '<mujoco><asset>\n<model name="m" file="model.xml"/></asset></mujoco>')
    assert [(p.code, p.line) for p in refused(path)] == [("mjcf.attach", 2)]


def refused(path: Path):
    with pytest.raises(ModelError) as caught:
        read_mjcf(path)
    return caught.value.problems


def inertial(attributes: str) -> str:
    return f'<body name="x"><joint/>\n<inertial pos="0 0 0" {attributes}/></body>'


REPLICATE = '<replicate count="1000">'
BAD = {
    "unknown element": ('<body>\n<jont/><geom size=".1"/></body>', "mjcf.refused", 5, "unrecognized element"),
    "unknown joint type": ('<body>\n<joint type="foo"/><geom size=".1"/></body>', "mjcf.refused", 5, "foo"),
    "zero axis": ('<body>\n<joint name="j" axis="0 0 0"/><geom size=".1"/></body>', "axis.zero", 5, "'j'"),
    "massless": ('<body name="x">\n<joint/></body>', "mjcf.refused", 4, "'x'"),
    "negative mass": (inertial('mass="-1" diaginertia="1 1 1"'), "mass.negative", 5, "'x'"),
    "triangle": (inertial('mass="1" diaginertia="1 1 3"'), "inertia.triangle", 5, "'x'"),
    "indefinite": (inertial('mass="1" fullinertia="1 1 1 2 2 2"'), "inertia.indefinite", 5, "'x'"),
    "decimal comma": (inertial('mass="1,5" diaginertia="1 1 1"'), "number.invalid", 5, "1,5"),
    "infinite mass": (inertial('mass="inf" diaginertia="1 1 1"'), "number.nonfinite", 5, "mass"),
    "nan": ('<body pos="0 nan 0">\n<joint/><geom size=".1"/></body>', "number.nonfinite", 4, "pos"),
    "duplicate body": ('<body name="x"/>\n<body name="x"/>', "mjcf.refused", 5, "repeated name 'x'"),
    "free inside": (
        '<body><body>\n<freejoint/><geom size="1"/></body></body>',
        "mjcf.refused",
        4,
        "top level",
    ),
    "plugin": ('<body><joint/><geom size="1"/>\n<plugin plugin="x"/></body>', "mjcf.plugin", 5, "plugin"),
    "bomb": (f"{REPLICATE * 2}\n{REPLICATE}<geom/>{'</replicate>' * 3}", "mjcf.too_large", 4, "100000"),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_bad_files_name_line_element_and_fix(tmp_path, case):
    content, code, line, fragment = BAD[case]
    path = write(tmp_path, world(content))
    problems = refused(path)
    assert [(p.code, p.file, p.line) for p in problems] == [(code, str(path), line)]
    assert fragment in problems[0].message and problems[0].fix


def test_ranges_in_the_wrong_order_are_an_error(tmp_path):
    body = '<body>\n<joint name="j" range="2 1"/><geom size=".1"/></body>'
    motor = '<actuator>\n<motor joint="j" ctrlrange="1 -1"/></actuator>'
    _, problems = read_mjcf(write(tmp_path, world(body, after=motor)))
    assert [(p.code, p.line, p.severity) for p in problems] == [
        ("limit.order", 8, Severity.ERROR),
        ("limit.order", 5, Severity.ERROR),
    ]


def test_all_problems_in_one_pass(tmp_path):
    path = write(
        tmp_path,
        world(
            """<body name="a"><joint name="j" axis="0 0 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>
<body name="b"><joint name="k" range="2 1"/>
<inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>"""
        ),
    )
    found = [(p.code, p.line) for p in refused(path)]
    assert found == [("axis.zero", 4), ("inertia.triangle", 5), ("limit.order", 6), ("mass.negative", 7)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('<!DOCTYPE mujoco [<!ENTITY a "b">]><mujoco/>', "xml.doctype"),
        ("<mujoco><worldbody></mujoco>", "xml.syntax"),
        ("<mujoco>" + "<a>" * 300 + "</a>" * 300 + "</mujoco>", "xml.size"),
        (
            '<mujoco><asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset></mujoco>',
            "mjcf.too_large",
        ),
        ('<mujoco><extension><plugin plugin="mujoco.pid"/></extension></mujoco>', "mjcf.plugin"),
    ],
)
def test_hostile_files_are_refused(tmp_path, text, code):
    assert code in {p.code for p in refused(write(tmp_path, text))}


@pytest.mark.parametrize("kind", ["up", "absolute", "link", "include", "meshdir"])
def test_no_path_leads_out_of_the_models_folder(tmp_path, kind):
    secret = write(tmp_path, "<mujoco/>", "elsewhere/secret.xml")
    inside = tmp_path / "robot"
    inside.mkdir()
    (inside / "link.obj").symlink_to(secret)
    asset = {
        "up": '<asset><mesh name="m" file="../elsewhere/secret.xml"/></asset>',
        "absolute": f'<asset><mesh name="m" file="{secret}"/></asset>',
        "link": '<asset><mesh name="m" file="link.obj"/></asset>',
        "include": '<include file="../elsewhere/secret.xml"/>',
        "meshdir": '<compiler meshdir="../elsewhere"/><asset><mesh name="m" file="secret.xml"/></asset>',
    }[kind]
    path = write(inside, f"<mujoco>\n{asset}\n</mujoco>")
    problems = refused(path)
    assert [(p.code, p.line) for p in problems] == [("mesh.outside", 2)]


def test_allowed_folders_and_missing_files(tmp_path):
    write(tmp_path, '<mujoco><option timestep=".5"/></mujoco>', "elsewhere/common.xml")
    (tmp_path / "robot").mkdir()
    text = world('<body><joint/><geom size=".1"/></body>', '<include file="../elsewhere/common.xml"/>')
    path = write(tmp_path / "robot", text)
    spec, _ = read_mjcf(path, allowed=[tmp_path / "elsewhere"])
    assert spec.timestep == 0.5
    write(tmp_path / "robot", '<mujoco>\n<include file="no.xml"/>\n<include file="nope.xml"/></mujoco>')
    assert [(p.code, p.line) for p in refused(path)] == [("mesh.missing", 2), ("mesh.missing", 3)]
    write(tmp_path / "robot", '<mujoco><include file="a.xml"/>\n<include file="a.xml"/></mujoco>')
    write(tmp_path / "robot", "<mujoco/>", "a.xml")
    assert [(p.code, p.line) for p in refused(path)] == [("mjcf.include", 2)]


def test_nan_in_any_number_is_refused_and_leaves_no_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, world('<body name="nan"><joint/>\n<geom size=".1" rgba="1 NaN 0 1"/></body>'))
    assert [(p.code, p.line) for p in refused(path)] == [("number.nonfinite", 5)]
    assert [file.name for file in tmp_path.iterdir()] == ["model.xml"]


def test_mujoco_never_sees_a_path(tmp_path):
    """Whatever the file names, MuJoCo's text has only names that exist in memory."""
    write(tmp_path, "solid x\nendsolid x", "part.stl")
    text = '<mujoco><compiler meshdir="."/><asset><mesh name="m" file="part.stl"/></asset></mujoco>'
    document = mjcf_document.open_document(write(tmp_path, text))
    assert "meshdir" not in document.text and "part.stl" not in document.text
    assert list(document.assets) == ["asset0.stl"]


def test_mutated_files_only_ever_raise_model_errors(tmp_path):
    rng = np.random.default_rng(0)
    source = bytearray(UNSUPPORTED.encode())
    words = [b'"', b"<", b">", b"/", b"nan", b"1e999", b"-1", b"body", b"joint", b"", b"&x;", b"0 0"]
    for _ in range(300):
        mutant = bytes(source)
        for _ in range(rng.integers(1, 4)):
            at, length = rng.integers(len(mutant)), rng.integers(0, 6)
            mutant = mutant[:at] + words[rng.integers(len(words))] + mutant[at + length :]
        path = tmp_path / "mutant.xml"
        path.write_bytes(mutant)
        try:
            read_mjcf(path)
        except ModelError as error:
            assert error.problems
