"""Carts with one or two poles; at q = 0 the poles are upright."""

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.model import Model


def cartpole() -> Model:
    """Cart on a rail along x with a hinged pole; the cart is actuated."""
    return _cart_with_poles("cartpole", poles=1)


def double_cartpole() -> Model:
    """Cart on a rail along x with two poles in series; the cart is actuated."""
    return _cart_with_poles("double_cartpole", poles=2)


def _cart_with_poles(name: str, poles: int, length: float = 1.0, pole_mass: float = 0.1) -> Model:
    robot = ModelBuilder(name)
    robot.add_body(
        "cart",
        joint="slider",
        kind="prismatic",
        axis=(1.0, 0.0, 0.0),
        mass=1.0,
        inertia=(0.006, 0.014, 0.013),
        lower=-1.8,
        upper=1.8,
        damping=0.05,
    )
    robot.add_geom("cart", "box", (0.2, 0.15, 0.1))
    for i in range(poles):
        robot.add_body(
            f"pole{i}" if poles > 1 else "pole",
            parent=f"pole{i - 1}" if i else "cart",
            joint=f"hinge{i}" if poles > 1 else "hinge",
            at=(0.0, 0.0, length if i else 0.0),
            axis=(0.0, 1.0, 0.0),
            mass=pole_mass,
            com=(0.0, 0.0, 0.5 * length),
            inertia=(pole_mass * length**2 / 12.0, pole_mass * length**2 / 12.0, 0.5 * pole_mass * 0.02**2),
            damping=2e-4,
        )
        robot.add_geom(robot.spec.bodies[-1].name, "capsule", (0.02, 0.5 * length), at=(0.0, 0.0, 0.5 * length))
    robot.add_frame("tip", robot.spec.bodies[-1].name, at=(0.0, 0.0, length))
    robot.add_actuator("slider", command_range=(-10.0, 10.0))
    return robot.build()
