"""MJCF actuators: the same forces as in MuJoCo, or omitted with a warning."""

from support.mjcf_files import load, world, write
from support.mujoco_import import assert_same_actuation, import_both

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
    imported = import_both(path)
    assert imported.merged.actuator.names == ("m", "p", "d", "actuator3", "g", "free")
    assert_same_actuation(imported)


def test_unsupported_actuators_are_omitted_with_name_and_line(tmp_path):
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
