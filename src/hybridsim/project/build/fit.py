"""Networks, sensors, free parameters and stages of a project."""

from collections.abc import Mapping, Sequence

import numpy as np

from hybridsim.core.errors import Problem, TapError
from hybridsim.data.recording import Recording
from hybridsim.identify.penalty import Sparsity
from hybridsim.identify.problem import Stage
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.solver import Solver
from hybridsim.identify.windows import ChannelRoles, time_span
from hybridsim.params.catalogue import CATALOGUE, INERTIAL
from hybridsim.params.free import Free
from hybridsim.params.resolve import ResolvedFree, resolve
from hybridsim.params.rows import row_names
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace, ownership_conflicts
from hybridsim.project.build.networks import network
from hybridsim.project.schema.fit import BlueprintGraftEntry, FreeEntry, StageEntry, WeightFitKeys
from hybridsim.project.schema.load import Project
from hybridsim.project.schema.location import SourceLocator
from hybridsim.project.schema.project_error import translate_advice
from hybridsim.project.schema.solvers import AdamTable, LevenbergMarquardtTable
from hybridsim.project.schema.toml_lines import KeyPath
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.address import AxisNames, select
from hybridsim.taps.blueprint import Blueprint, BoundGraft, Graft

DEFAULT_WINDOWS = (0.25, 1.0)
"""Window lengths of the default stages [s]; runs shorter than the last one are used whole."""
MIN_SAMPLES = 10
"""Minimum number of samples of a channel in the windows of a default stage."""


def blueprint_of(project: Project, names: AxisNames, problems: list[Problem]) -> Blueprint | None:
    """Networks of a project, or None if one does not match the model."""
    inputs = {entry.input: 1 for entry in project.content.command if entry.input}
    before = len(problems)
    grafts = grafts_of(project.content.graft, inputs, names, project.content.run.seed, project.locator, problems)
    return Blueprint(*grafts, inputs=inputs) if len(problems) == before else None


def grafts_of(
    entries: Sequence[BlueprintGraftEntry],
    inputs: Mapping[str, int],
    names: AxisNames,
    seed: int,
    locator: SourceLocator,
    problems: list[Problem],
) -> list[Graft]:
    """Grafts of the tables of a file.

    Args:
        entries: the tables.
        inputs: user inputs and their sizes.
        names: axis names of the model.
        seed: random seed of the initial weights.
        locator: source locations of the file.
        problems: list to which errors are appended.
    """
    grafts: list[Graft] = []
    for index, entry in enumerate(entries):
        try:
            graft = _graft(entry, names, inputs, seed + index)
            Blueprint(graft, inputs=inputs).bind(names)
            grafts.append(graft)
        except (TapError, ValueError) as error:
            key_path: KeyPath = ("graft", index)
            message = f"{locator.section(key_path)}: {error}"
            fix = "`hybridsim taps MODEL` lists the available quantities"
            problems.append(
                locator.problem(_key_of_address(key_path, entry, str(error)), message, fix, "project.graft")
            )
    return grafts


def _graft(entry: BlueprintGraftEntry, names: AxisNames, inputs: Mapping[str, int], seed: int) -> Graft:
    input_taps = tuple(select(address, names, inputs, write=False) for address in entry.inputs)
    output_taps = tuple(select(address, names, inputs, write=True) for address in entry.outputs)
    bound = BoundGraft(lambda x: x, output_taps, input_taps, entry.mode, entry.per)
    size_in = sum(tap.scalars_per_row if bound.is_per_row(tap) else tap.size for tap in input_taps)
    size_out = sum(tap.scalars_per_row if entry.per == "element" else tap.size for tap in output_taps)
    net = network(entry.network, size_in, size_out, seed)
    return Graft(entry.outputs, entry.inputs, net, mode=entry.mode, per=entry.per)


def _key_of_address(key_path: KeyPath, entry: BlueprintGraftEntry, message: str) -> KeyPath:
    """Key path of the address that an error message names."""
    for key in ("outputs", "inputs"):
        for index, address in enumerate(getattr(entry, key)):
            if repr(address) in message:
                return (*key_path, key, index) if len(getattr(entry, key)) > 1 else (*key_path, key)
    return key_path


def sensors_of(project: Project, sim: Simulator, problems: list[Problem]) -> Sensors | None:
    """Sensors of a project, or None if a measured quantity does not exist."""
    entries, before = project.content.channel, len(problems)
    for index, entry in enumerate(entries):
        try:
            Sensors.from_addresses(sim, {entry.series_name: entry.measures})
        except TapError as error:
            key_path: KeyPath = ("channel", index)
            message = f"{project.locator.section(key_path)}: {error}"
            fix = "`hybridsim taps MODEL` lists the quantities that can be measured"
            problems.append(project.locator.problem((*key_path, "measures"), message, fix, "project.tap"))
    if len(problems) > before:
        return None
    return Sensors.from_addresses(
        sim,
        {entry.series_name: entry.measures for entry in entries},
        gain=[entry.gain for entry in entries],
        bias=[entry.bias for entry in entries],
        delay=[entry.delay for entry in entries],
    )


def space_of(
    project: Project, setup: Setup, problems: list[Problem], *, missing: Sequence[str] = ()
) -> ParameterSpace | None:
    """Parameter space of a project; None if there are errors.

    Args:
        project: the project.
        setup: simulator and sensors with all parameters.
        problems: list to which errors are appended.
        missing: prefixes of names that the setup lacks because of other errors; these names are not reported.
    """
    content, locator = project.content, project.locator
    free_entries: list[tuple[KeyPath, Free]] = [
        (("free", index), _free(entry)) for index, entry in enumerate(content.free)
    ]
    count = len(content.graft)
    weights: list[tuple[KeyPath, int, WeightFitKeys]] = [
        (("graft", k), k, entry) for k, entry in enumerate(content.graft)
    ]
    if content.blueprint is not None:
        from_file = range(count, len(setup.sim.blueprint.grafts))
        weights += [(("blueprint",), index, content.blueprint) for index in from_file]
    for key_path, index, entry in weights:
        if entry.fit:
            bounds = None if entry.limit is None else (-entry.limit, entry.limit)
            free_entries.append((key_path, Free(f"graft[{index}]", l2=entry.l2, bounds=bounds)))
    if not free_entries:
        names = [kind.name for kind in (*CATALOGUE, INERTIAL) if row_names(kind.row_kind, setup)]
        fix = f'add [[free]], for example with name = "joint.damping[*]"; available parameters: {", ".join(names)}'
        problems.append(locator.problem((), "the project has no free parameters", fix, "project.free"))
        return None
    before, parts = len(problems), []
    for key_path, free in free_entries:
        if any(name.startswith(tuple(missing)) for name in free.names):
            continue
        part = resolve(free, setup)
        if isinstance(part, ResolvedFree):
            reported = set(ownership_conflicts([c for p in parts for c in p.parameters]))
            parts.append(part)
            messages = [m for m in ownership_conflicts([c for p in parts for c in p.parameters]) if m not in reported]
        else:
            messages = part
        for text in messages:
            message, _, fix = translate_advice(text).partition("; ")
            fix = fix or "docs/projects.md describes the free parameters"
            problems.append(locator.problem(key_path, f"{locator.section(key_path)}: {message}", fix, "project.free"))
    return (
        ParameterSpace(setup, [free for _, free in free_entries]) if len(problems) == before and not missing else None
    )


def _free(entry: FreeEntry) -> Free:
    return Free(
        entry.name[0] if len(entry.name) == 1 else entry.name,
        bounds=entry.bounds,
        initial=entry.initial,
        map=entry.map,
        prior=entry.prior,
        scale=entry.scale,
        l1=entry.l1,
        l2=entry.l2,
        group=entry.group,
        tied=entry.tied,
        per=entry.per,
    )


def stages_of(project: Project, runs: Sequence[Recording], channel_roles: ChannelRoles) -> tuple[Stage, ...]:
    """Stages of a fit; by default with increasing window lengths."""
    if project.content.stage:
        return tuple(_stage(entry, project.content.run.seed) for entry in project.content.stage)
    longest = max(end - begin for begin, end in (time_span(run, channel_roles) for run in runs))
    step = float(np.median([run.series[name].median_sample_interval for run in runs for name in channel_roles.noise]))
    lengths = [length for length in DEFAULT_WINDOWS if MIN_SAMPLES * step <= length < longest]
    stages = [Stage(window=length) for length in lengths]
    return tuple(stages) if DEFAULT_WINDOWS[-1] in lengths else (*stages, Stage())


def _stage(entry: StageEntry, seed: int) -> Stage:
    return Stage(
        window=entry.window,
        stride=entry.stride,
        initial_states=entry.initial_states,
        initial_state_std=entry.initial_state_std,
        continuity=entry.continuity,
        loss=entry.loss,
        loss_scale=entry.loss_scale,
        sparsity=Sparsity(**entry.sparsity.model_dump()),
        solver=_solver(entry, seed),
    )


def _solver(entry: StageEntry, seed: int) -> Solver:
    solver = entry.solver
    if isinstance(solver, LevenbergMarquardtTable):
        return LevenbergMarquardt(**solver.settings)
    return Adam(**{"seed": seed, **solver.settings}) if isinstance(solver, AdamTable) else LBFGS(**solver.settings)
