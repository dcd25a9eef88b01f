"""A hand-written arm in URDF and MJCF, with comments, odd spacing and unknown elements that an export preserves."""

ARM_URDF = """<?xml version='1.0' encoding="utf-8"?>\r
<!-- Übersicht: comments, CRLF and odd spacing must survive -->\r
<robot  name='arm'>\r
  <my_company:note xmlns:my_company="urn:x">&amp; more</my_company:note>\r
  <link name="base"/>\r
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>\r
    <origin   rpy="0.10 0 -0"  xyz = '0  0.00 +.5'/> <!-- here -->\r
    <axis xyz="0 2.0 0"/>\r
    <limit upper="2" lower="-1.0" velocity="5" effort="10"/>\r
    <dynamics friction="0.25" damping="5e-1"/>\r
  </joint>\r
  <link name="upper">\r
    <inertial>\r
      <mass value="1.50"/>\r
      <origin xyz="0 0 .2" rpy="0 0 0"/>\r
      <inertia iyy="0.02" ixx="2e-2" izz="0.002" ixy="0" ixz="0" iyz="0"/>\r
    </inertial>\r
  </link>\r
  <joint name="flange" type="fixed"><parent link="upper"/><child link="tool"/>\r
    <origin xyz="0 0.1 0.4" rpy="0.3 0.2 0.1"/></joint>\r
  <link name="tool">\r
    <inertial><origin rpy="1 0 0" xyz="0 0 .1"/><mass value="0.2"/>\r
      <inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>\r
  <joint name="wrist" type="continuous"><parent link="tool"/><child link="hand"/>\r
    <origin xyz="0 0 0.05"/></joint>\r
  <link name="hand">\r
    <inertial>\r
      <origin xyz="0 0 .1" rpy="0 0.5 0"/>\r
      <mass value="0.5"/>\r
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.012" iyz="0" izz="0.005"/>\r
    </inertial>\r
  </link>\r
  <joint name="finger1" type="prismatic"><parent link="hand"/><child link="left"/>\r
    <limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>\r
  <link name="left"><inertial><mass value="0.1"/>\r
      <inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>\r
  <joint name="finger2" type="prismatic"><parent link="hand"/><child link="right"/>\r
    <axis xyz="-1 0 0"/><limit lower="0" upper="0.04"/><mimic joint="finger1"/></joint>\r
  <link name="right"><inertial><mass value="0.1"/>\r
      <inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>\r
  <unknown/>\r
</robot>\r
"""
UPPER, HAND, LEFT, RIGHT = range(4)
"""Body indices of the URDF arm after `tool` is merged into `upper`."""


def one_link_urdf(name: str = "arm", mass: str = "1.5", lower: str = "-1.5") -> str:
    """An arm of one link, as URDF text."""
    return f"""<robot name="{name}">
  <link name="world"/>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 -0.25"/>
      <mass value="{mass}"/>
      <inertia ixx="0.02" iyy="0.02" izz="0.002" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="world"/>
    <child link="upper"/>
    <axis xyz="0 1 0"/>
    <limit lower="{lower}" upper="1.5" effort="20" velocity="5"/>
  </joint>
</robot>
"""


ARM_MJCF = """<?xml version="1.0" encoding="utf-8"?>
<!-- a hand-written arm: keep me -->
<mujoco model='arm'>
\t<compiler eulerseq="zyx"/>   <!-- angles in degrees, the default -->
  <option timestep="0.002" />
  <default>
    <joint damping="0.5" user="1 2"/>
    <default class="soft"><joint stiffness="3" springref="10"/><geom friction="0.8 0.01 0.001"/></default>
  </default>
  <custom><numeric name="unknown to us" data="1 2 3"/></custom>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1"/>
    <body name="base" pos="0 0 1" euler="30 0 0">
      <joint name="turn" axis="0 0 1" range="-90 90" ref="20"   armature = "0.1"/>
      <inertial mass="2.50" pos="0 0 .1" diaginertia="0.10 0.2 0.25"/>
      <!-- inside -->
      <body name="upper" childclass="soft" pos=".1 0 0">
        <joint name="lift" axis="0 1 0" pos="0 0 -.05" frictionloss=".2" limited="false"/>
        <joint name="push" type="slide" axis="1 0 0" range="-.1 .2"/>
        <geom name="shell" type="box" size=".1 .2 .3" rgba="1 0 0 1"/>
        <frame pos="0 0 .3" euler="0 90 0">
          <body name="wrist" pos=".1 .2 .3" xyaxes="0 1 0 -1 0 0">
            <joint name="ball" type="ball"/>
            <inertial pos="0 0 0" mass="1" quat="1 1 0 0" diaginertia=".01 .02 .025"/>
            <body name="tool" pos="0 0 .1"><geom name="tip" size=".02" mass=".3"/>
              <body name="finger" pos="0 .1 0"><joint name="grip"/><geom size=".02"/></body>
            </body>
          </body>
        </frame>
      </body>
    </body>
    <replicate count="2" offset="1 0 0"><body name="copy" pos="3 0 0"><joint name="spin"/><geom size=".1"/></body></replicate>
  </worldbody>
  <actuator>
    <motor name="motor" joint="turn" gear="50 0 0 0 0 0" ctrlrange="-1 1"/>
    <position name="servo" joint="lift" kp="20" kv="1.5"/>
    <velocity name="drive" joint="push" kv="4" forcerange="-3 3"/>
    <general name="any" joint="push" gainprm="2 0 0" biastype="affine" biasprm="1 -2 -3"/>
  </actuator>
</mujoco>
"""  # noqa: E501


def line_of(fragment: str) -> int:
    """Line number of a text fragment in the MJCF arm."""
    return next(k for k, line in enumerate(ARM_MJCF.splitlines(), 1) if fragment in line)
