"""`hybridsim export-c`: write the time step of a model as C."""

import math
from pathlib import Path
from typing import Literal

from hybridsim.cli.options import ModelName, Reading, ReadingOptions, refuse_to_overwrite
from hybridsim.cli.output import print_json, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import pluralize


def export_c(
    model: ModelName,
    out: Path = Path("step.c"),
    integrator: Literal["euler", "rk4", "implicit"] = "euler",
    dt: float | None = None,
    prefix: str | None = None,
    fma: bool = True,
    reading: Reading = ReadingOptions(),  # noqa: B008 - frozen
    json: bool = False,
) -> int:
    """Write one time step of a model, and the derivative of that step, as a C99 file for controllers.

    The file needs nothing but the C library: no memory is allocated, and it compiles with any C99 compiler. The header
    beside it, with the ending .h, tells the meaning of every number.

    For example:
      hybridsim export-c double_pendulum
      hybridsim export-c robot.urdf --base free --integrator implicit --dt 0.002 --out robot_step.c
      hybridsim export-c quadruped --no-fma --prefix quad
      gcc -std=c99 -O2 -mfma -c step.c

    Args:
        model: file or built-in mechanism.
        out: C file to write; the header is written beside it.
        integrator: semi-implicit euler, rk4, or implicit in velocity for stiff damping.
        dt: time step [s]; the model's own by default. It remains a parameter.
        prefix: what the names in the files begin with; by default made from the model's name.
        fma: use fused multiply-add; leave it out for processors that have none.
        reading: how to read the file.
        json: print a summary as JSON for other programs.
    """
    if dt is not None and not (math.isfinite(dt) and dt > 0.0):
        raise HybridsimError(f"--dt must be positive and finite, not {dt:g} s")
    for path in (out, out.with_suffix(".h")):
        refuse_to_overwrite(model, path)

    from hybridsim.sim.c_export.export_step import export_c as write
    from hybridsim.sim.simulator import Simulator

    mechanism = reading.load(model)
    done = write(Simulator(mechanism, dt=dt, integrator=integrator), out, prefix=prefix, fma=fma)
    if json:
        print_json(
            {
                "model": mechanism.name,
                "out": str(done.source),
                "header": str(done.header),
                "prefix": done.prefix,
                "states": done.state_size,
                "commands": done.input_size,
                "parameters": done.parameter_count,
                "differentiated": done.gradient_size,
                "step_memory_bytes": done.step_stack_bytes,
                "vjp_memory_bytes": done.vjp_stack_bytes,
            }
        )
        return 0
    say(
        f"{mechanism.name}: {pluralize(done.state_size, 'state')}, {pluralize(done.input_size, 'command')}, "
        f"{pluralize(done.parameter_count, 'parameter')} ({done.gradient_size} with derivatives), "
        f"written to {done.source} and {done.header}"
    )
    return 0
