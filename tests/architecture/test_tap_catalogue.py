"""The catalogue and the taps in the engine are one and the same list."""

import ast
from pathlib import Path

import jax
import numpy as np
import pytest

import hybridsim
from hybridsim.robots import cartpole, cube
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import observe
from hybridsim.taps.catalogue import CATALOGUE

SOURCE = Path(hybridsim.__file__).parent


def _taps_in_the_engine() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "taps":
                name = node.args[0]
                assert isinstance(name, ast.Constant), f"{file}:{node.lineno}: the name of a tap must be a literal"
                found.setdefault(str(name.value), []).append(file.relative_to(SOURCE).as_posix())
    return found


def test_every_tap_is_in_the_catalogue_exactly_once_in_its_owner_file():
    assert _taps_in_the_engine() == {quantity.name: [quantity.owner] for quantity in CATALOGUE}


@pytest.mark.parametrize("contact", ["none", "impulse", "compliant"])
def test_catalogue_has_the_order_and_shapes_of_the_program(contact):
    model = cartpole() if contact == "none" else cube()
    sim = Simulator(model, contact=contact)
    seen: dict = {}
    # shapes are enough: nothing is compiled
    jax.eval_shape(lambda state: seen.update(observe(sim, state)), sim.initial_state())
    left_out = "step.q" if sim.contact.candidates.nc else ("step.q", "contact")
    expected = [quantity for quantity in CATALOGUE if not quantity.name.startswith(left_out)]
    assert list(seen) == [quantity.name for quantity in expected]
    rows = {
        "coordinate": (model.nq,),
        "dof": (model.nv,),
        "body": (model.nb,),
        "actuator": (model.nu,),
        "contact": (sim.contact.candidates.nc,),
        "-": (),
    }
    for quantity in expected:
        parts = (len(quantity.components),) if quantity.components else rows[quantity.component_axis]
        assert np.shape(seen[quantity.name]) == (*rows[quantity.axis], *parts), quantity.name
