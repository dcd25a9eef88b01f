"""Every registered function: in native code it is the JAX primitive of its name."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hybridsim.native.graph.elementary import FUNCTIONS, reference_function
from support.native_functions import case, check_against_xla

VALUES = np.array([0.04, 0.3, 0.62, 0.97])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_the_primitive_of_its_name(name):
    x = 1.0 / VALUES if name == "acosh" else VALUES
    function = getattr(lax, name)
    check_against_xla({name: case(lambda x: function(jnp.asarray(x)), x)}, 4e-14, element_by_element=True)
    np.testing.assert_allclose(reference_function(name)(x), function(x), rtol=4e-14)
