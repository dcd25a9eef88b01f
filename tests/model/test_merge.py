import numpy as np

from hybridsim.model.builder import ModelBuilder


def arm():
    """Builder of an arm with a base fixed to the world and a tool fixed to the arm, each with its own shape."""
    builder = ModelBuilder("arm")
    builder.add_geom("world", "plane", (0, 0, 0), name="floor")
    builder.add_body("base", kind="fixed", at=(0, 0, 1.0), mass=5.0, inertia=(1, 1, 1)).add_geom(
        "base", "sphere", (0.2,), name="foot"
    )
    builder.add_body("arm", parent="base", joint="hinge", axis=(0, 1, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.add_geom("arm", "sphere", (0.1,), name="elbow")
    builder.add_body("tool", parent="arm", kind="fixed", at=(0, 0, -1.0), mass=3.0, inertia=(0.1, 0.1, 0.1))
    builder.add_geom("tool", "sphere", (0.05,), name="tip", at=(0, 0, -0.1))
    builder.spec.excluded_pairs = [("base", "arm"), ("base", "tool")]
    return builder


def test_merged_bodies_keep_mass_frames_and_shapes():
    model = arm().build()
    assert model.topology.body_names == ("arm",) and model.topology.frame_names == ("base", "tool")
    np.testing.assert_allclose(model.body.mass, [4.0])
    np.testing.assert_allclose(model.body.com, [[0, 0, -0.75]])
    # inertias of both bodies plus the parallel-axis terms about the common centre of mass
    np.testing.assert_allclose(model.body.inertia[0][:3], [0.2 + 0.75, 0.2 + 0.75, 0.2])
    np.testing.assert_allclose(model.geometry.placement.p[3], [0, 0, -1.1])


def test_exclusions_refer_to_links_so_that_the_floor_is_not_excluded_with_the_base():
    geometry = arm().build().geometry
    assert [(info.name, info.body, info.link) for info in geometry.infos] == [
        ("floor", -1, "world"),
        ("foot", -1, "base"),
        ("elbow", 0, "arm"),
        ("tip", 0, "tool"),
    ]
    assert geometry.excluded_pairs == (("base", "arm"), ("base", "tool"))
    assert [info.link for info in arm().build(merge=False).geometry.infos] == ["world", "base", "arm", "tool"]
