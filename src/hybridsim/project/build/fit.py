"""From the sections `[[graft]]`, `[[free]]` and `[[stage]]` to networks, free parameters and the stages of a fit."""

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
from hybridsim.identify.windows import Measurements, span
from hybridsim.params.catalog import CATALOG, INERTIAL
from hybridsim.params.free import Free
from hybridsim.params.resolve import ResolvedFree, resolve
from hybridsim.params.rows import row_names
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace, ownership_conflicts
from hybridsim.project.build.networks import network
from hybridsim.project.schema.fit import FittedWeights, FreeEntry, GraftTable, StageEntry
from hybridsim.project.schema.load import Project
from hybridsim.project.schema.location import Place
from hybridsim.project.schema.project_error import in_project_words
from hybridsim.project.schema.solvers import AdamSolver, LevenbergMarquardtSolver
from hybridsim.project.schema.toml_lines import Way
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.address import AxisNames, select
from hybridsim.taps.blueprint import Blueprint, BoundGraft, Graft

FIRST_WINDOWS = (0.25, 1.0)
"""Lengths of windows of the stages [s], if a project has none; runs that are shorter than the last are taken whole."""
FEWEST_SAMPLES = 10
"""Samples of a channel in a window that is worth a stage."""


def blueprint_of(project: Project, names: AxisNames, found: list[Problem]) -> Blueprint | None:
    """The networks of a project, or None if one does not fit the model."""
    inputs = {entry.input: 1 for entry in project.content.command if entry.input}
    before = len(found)
    grafts = grafts_of(project.content.graft, inputs, names, project.content.run.seed, project.place, found)
    return Blueprint(*grafts, inputs=inputs) if len(found) == before else None


def grafts_of(
    entries: Sequence[GraftTable],
    inputs: Mapping[str, int],
    names: AxisNames,
    seed: int,
    place: Place,
    found: list[Problem],
) -> list[Graft]:
    """Grafts of the tables of a file.

    Args:
        entries: the tables.
        inputs: user inputs and their sizes.
        names: of the model.
        seed: of the first weights.
        place: where things are in the file.
        found: whatever is wrong is added to it.
    """
    grafts: list[Graft] = []
    for number, entry in enumerate(entries):
        try:
            graft = _graft(entry, names, inputs, seed + number)
            Blueprint(graft, inputs=inputs).bind(names)
            grafts.append(graft)
        except (TapError, ValueError) as error:
            way: Way = ("graft", number)
            message = f"{place.section(way)}: {error}"
            fix = "`hybridsim taps MODEL` lists what there is"
            found.append(place.problem(_key_with(way, entry, str(error)), message, fix, "project.graft"))
    return grafts


def _graft(entry: GraftTable, names: AxisNames, inputs: Mapping[str, int], seed: int) -> Graft:
    reads = tuple(select(address, names, inputs, write=False) for address in entry.inputs)
    changes = tuple(select(address, names, inputs, write=True) for address in entry.outputs)
    sizes = BoundGraft(lambda x: x, changes, reads, entry.mode, entry.per)
    size_in = sum(one.per_row if sizes.is_per_row(one) else one.size for one in reads)
    size_out = sum(one.per_row if entry.per == "element" else one.size for one in changes)
    net = network(entry.network, size_in, size_out, seed)
    return Graft(entry.outputs, entry.inputs, net, mode=entry.mode, per=entry.per)


def _key_with(way: Way, entry: GraftTable, message: str) -> Way:
    """The key of an entry that holds an address which a message names."""
    for key in ("outputs", "inputs"):
        for number, address in enumerate(getattr(entry, key)):
            if repr(address) in message:
                return (*way, key, number) if len(getattr(entry, key)) > 1 else (*way, key)
    return way


def sensors_of(project: Project, sim: Simulator, found: list[Problem]) -> Sensors | None:
    """The sensors of a project, or None if one measures what there is not."""
    entries, before = project.content.channel, len(found)
    for number, entry in enumerate(entries):
        try:
            Sensors.of(sim, {entry.called: entry.measures})
        except TapError as error:
            way: Way = ("channel", number)
            message = f"{project.place.section(way)}: {error}"
            fix = "`hybridsim taps MODEL` lists what can be measured"
            found.append(project.place.problem((*way, "measures"), message, fix, "project.tap"))
    if len(found) > before:
        return None
    return Sensors.of(
        sim,
        {entry.called: entry.measures for entry in entries},
        gain=[entry.gain for entry in entries],
        bias=[entry.bias for entry in entries],
        delay=[entry.delay for entry in entries],
    )


def space_of(
    project: Project, setup: Setup, found: list[Problem], *, missing: Sequence[str] = ()
) -> ParameterSpace | None:
    """The free parameters of a project, or None.

    Args:
        project: the project.
        setup: what they are free in.
        found: whatever is wrong is added to it.
        missing: beginnings of names that the setup lacks because of other errors; nothing is said about them.
    """
    content, place = project.content, project.place
    frees: list[tuple[Way, Free]] = [(("free", number), _free(entry)) for number, entry in enumerate(content.free)]
    own = len(content.graft)
    weights: list[tuple[Way, int, FittedWeights]] = [(("graft", k), k, entry) for k, entry in enumerate(content.graft)]
    if content.blueprint is not None:
        others = range(own, len(setup.sim.blueprint.grafts))
        weights += [(("blueprint",), number, content.blueprint) for number in others]
    for way, number, entry in weights:
        if entry.fit:
            bounds = None if entry.limit is None else (-entry.limit, entry.limit)
            frees.append((way, Free(f"graft[{number}]", l2=entry.l2, bounds=bounds)))
    if not frees:
        names = [parameter.name for parameter in (*CATALOG, INERTIAL) if row_names(parameter.rows, setup)]
        fix = f'add [[free]] with name = "joint.damping[*]", for example; there are {", ".join(names)}'
        found.append(place.problem((), "nothing is free, so that there is nothing to fit", fix, "project.free"))
        return None
    before, parts = len(found), []
    for way, free in frees:
        if any(name.startswith(tuple(missing)) for name in free.names):
            continue
        part = resolve(free, setup)
        if isinstance(part, ResolvedFree):
            told = set(ownership_conflicts([c for one in parts for c in one.parameters]))
            parts.append(part)
            problems = [p for p in ownership_conflicts([c for one in parts for c in one.parameters]) if p not in told]
        else:
            problems = part
        for problem in problems:
            message, _, fix = in_project_words(problem).partition("; ")
            fix = fix or "docs/projects.md explains what can be free, and how"
            found.append(place.problem(way, f"{place.section(way)}: {message}", fix, "project.free"))
    return ParameterSpace(setup, [free for _, free in frees]) if len(found) == before and not missing else None


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


def stages_of(project: Project, runs: Sequence[Recording], measured: Measurements) -> tuple[Stage, ...]:
    """The stages of a fit; windows that grow, where a project has none."""
    if project.content.stage:
        return tuple(_stage(entry, project.content.run.seed) for entry in project.content.stage)
    longest = max(end - begin for begin, end in (span(run, measured) for run in runs))
    step = float(np.median([run.series[name].median_step for run in runs for name in measured.noise]))
    lengths = [length for length in FIRST_WINDOWS if FEWEST_SAMPLES * step <= length < longest]
    stages = [Stage(window=length) for length in lengths]
    return tuple(stages) if FIRST_WINDOWS[-1] in lengths else (*stages, Stage())


def _stage(entry: StageEntry, seed: int) -> Stage:
    return Stage(
        window=entry.window,
        stride=entry.stride,
        starts=entry.starts,
        initial_state_std=entry.initial_state_std,
        ties=entry.ties,
        loss=entry.loss,
        loss_scale=entry.loss_scale,
        sparsity=Sparsity(**entry.sparsity.model_dump()),
        solver=_solver(entry, seed),
    )


def _solver(entry: StageEntry, seed: int) -> Solver:
    solver = entry.solver
    if isinstance(solver, LevenbergMarquardtSolver):
        return LevenbergMarquardt(**solver.settings)
    return Adam(**{"seed": seed, **solver.settings}) if isinstance(solver, AdamSolver) else LBFGS(**solver.settings)
