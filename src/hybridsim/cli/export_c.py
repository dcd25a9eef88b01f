"""`hybridsim export-c`: export the time step of a model as C."""

import math
from pathlib import Path

from hybridsim.cli.options import IntegratorName, Loader, ModelLoader, ModelName, require_new_files
from hybridsim.cli.output import print_json, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import pluralize


def export_c(
    model: ModelName,
    out: Path = Path("step.c"),
    integrator: IntegratorName = "euler",
    dt: float | None = None,
    prefix: str | None = None,
    fma: bool = True,
    force: bool = False,
    loader: Loader = ModelLoader(),
    json: bool = False,
) -> int:
    """Export one time step of a model and its derivatives as C99 source for controllers.

    The code depends on the C library only, allocates no memory and compiles with any C99 compiler. The header, with the
    suffix .h, documents every state, command and parameter.

    For example:
      hybridsim export-c double_pendulum
      hybridsim export-c robot.urdf --base free --integrator implicit --dt 0.002 --out robot_step.c
      hybridsim export-c quadruped --no-fma --prefix quad
      gcc -std=c99 -O2 -mfma -c step.c

    Args:
        model: file or built-in mechanism.
        out: C file to write; the header is written next to it.
        integrator: integration scheme; euler is semi-implicit, implicit is for stiff damping.
        dt: time step [s]; by default that of the model. It remains a parameter of the generated code.
        prefix: prefix of the C identifiers; by default derived from the model's name.
        fma: use fused multiply-add; disable it for processors that lack it.
        force: overwrite existing files.
        loader: options of the model loader.
        json: print a summary as JSON instead of text.
    """
    if dt is not None and not (math.isfinite(dt) and dt > 0.0):
        raise HybridsimError(f"--dt must be positive and finite, not {dt:g} s")
    require_new_files([out, out.with_suffix(".h")], [model], force=force)

    from hybridsim.sim.c_export.export_step import export_c as export_step
    from hybridsim.sim.simulator import Simulator

    mechanism = loader.load(model)
    exported = export_step(Simulator(mechanism, dt=dt, integrator=integrator), out, prefix=prefix, fma=fma)
    if json:
        print_json(
            {
                "model": mechanism.name,
                "out": str(exported.source),
                "header": str(exported.header),
                "prefix": exported.prefix,
                "states": exported.state_size,
                "commands": exported.input_size,
                "parameters": exported.parameter_count,
                "parameters_with_derivatives": exported.gradient_size,
                "step_stack_bytes": exported.step_stack_bytes,
                "vjp_stack_bytes": exported.vjp_stack_bytes,
            }
        )
        return 0
    say(
        f"{mechanism.name}: {pluralize(exported.state_size, 'state')}, {pluralize(exported.input_size, 'command')}, "
        f"{pluralize(exported.parameter_count, 'parameter')} ({exported.gradient_size} with derivatives), "
        f"written to {exported.source} and {exported.header}"
    )
    return 0
