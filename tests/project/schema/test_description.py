"""A fit has one description: Python and project files have the same settings, with the same defaults."""

import dataclasses
import inspect
from typing import get_args, get_type_hints

import pytest

import hybridsim as hs
from hybridsim.contact.choices import CONTACTS, FRICTION_LAWS, STABILIZATIONS
from hybridsim.core.derived_table import table_of
from hybridsim.core.specification import setting_fields, tables_of
from hybridsim.data.recording_options import RecordingOptions
from hybridsim.dynamics.choices import ACTUATION_STAGES
from hybridsim.identify.penalty import Sparsity
from hybridsim.identify.solvers.registry import SOLVERS
from hybridsim.io.load_options import LoadKwargs, LoadOptions
from hybridsim.networks.choices import NETWORKS, SIZES
from hybridsim.project.schema.content import Content
from hybridsim.project.schema.data import DataSection
from hybridsim.project.schema.grafts import BlueprintSection, graft_entry
from hybridsim.project.schema.model import ModelSection, RunSection
from hybridsim.sim.simulation_settings import SimulationSettings

SECTIONS = {
    "model": (ModelSection,),
    "data": (DataSection,),
    "channel": (hs.Channel,),
    "command": (hs.Command,),
    "free": (hs.Free,),
    "graft": (graft_entry(),),
    "blueprint": (BlueprintSection,),
    "stage": (hs.Stage,),
    "run": (RunSection,),
}
FIT_ARGUMENTS = {
    "experiment": {"model", "channel", "command", "graft", "blueprint"},
    "free": {"free"},
    "train": {"data"},
    "held_out": {"data"},
    "stages": {"stage"},
    "seed": {"run"},
    "name": {"run"},
    "folder": {"run"},
    "resume": set(),
    "quiet": set(),
}
"""Sections that correspond to an argument of `fit`; flags of the command where there are none."""
EXPERIMENT_FIELDS = {"model": "model", "channels": "channel", "commands": "command", "grafts": "graft"}
EXPERIMENT_FIELDS |= {"blueprint": "blueprint"} | dict.fromkeys(setting_fields(SimulationSettings), "model")
"""Section that corresponds to a field of `Experiment`."""


def defaults(function) -> dict:
    """Default values of arguments."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def test_every_section_is_a_class_of_the_description():
    assert set(Content.model_fields) == set(SECTIONS)
    for name, field in Content.model_fields.items():
        assert tuple(table for table, _ in tables_of(field.annotation, field.metadata)) == SECTIONS[name]


def test_every_argument_of_a_fit_and_an_experiment_has_a_section():
    assert set(inspect.signature(hs.fit).parameters) == set(FIT_ARGUMENTS)
    assert set(setting_fields(hs.Experiment)) == set(EXPERIMENT_FIELDS)
    reached = set().union(*FIT_ARGUMENTS.values()) | set(EXPERIMENT_FIELDS.values())
    assert reached == set(Content.model_fields)
    from hybridsim.cli.fit import fit as command

    assert {"resume", "quiet"} <= set(inspect.signature(command).parameters)


def test_the_model_section_has_the_settings_of_models_and_simulations():
    expected = {*setting_fields(LoadOptions), *setting_fields(SimulationSettings), "file", "built_in"}
    assert set(setting_fields(ModelSection)) == expected
    assert set(get_type_hints(LoadKwargs)) == set(setting_fields(LoadOptions))
    simulator = set(inspect.signature(hs.Simulator).parameters) - {"model", "blueprint"}
    assert set(setting_fields(SimulationSettings)) == simulator | {"floor"}
    settings = SimulationSettings()
    for name, default in defaults(hs.Simulator).items():
        assert name == "blueprint" or not getattr(settings, name) or getattr(settings, name) == default


def test_the_data_section_has_the_settings_of_recordings():
    assert set(setting_fields(DataSection)) == {*setting_fields(RecordingOptions), "files", "held_out"}
    assert set(inspect.signature(hs.load_recordings).parameters) == {*setting_fields(RecordingOptions), "files"}
    options = RecordingOptions()
    assert defaults(hs.load_recordings) == {name: getattr(options, name) for name in setting_fields(RecordingOptions)}
    assert setting_fields(DataSection)["held_out"].default == defaults(hs.fit)["held_out"]
    assert setting_fields(RunSection)["seed"].default == defaults(hs.fit)["seed"]


def test_a_graft_has_the_settings_of_its_class_and_of_its_network():
    assert set(setting_fields(graft_entry())) == set(inspect.signature(hs.Graft).parameters) - {"net"} | {"network"}
    (choice,) = {choice for _, choice in tables_of(None, setting_fields(graft_entry())["network"].metadata)}
    assert choice.names == list(NETWORKS)
    for name, kind in NETWORKS.items():
        arguments = inspect.signature(kind).parameters
        assert set(setting_fields(choice.table(name))) == set(arguments) - set(SIZES)
        table_defaults = {key: field.default for key, field in choice.table(name).model_fields.items()}
        assert all(
            arguments[key].default in (default, inspect.Parameter.empty) for key, default in table_defaults.items()
        )


@pytest.mark.parametrize(
    "table",
    [CONTACTS, FRICTION_LAWS, STABILIZATIONS, ACTUATION_STAGES],
    ids=("contact", "laws", "stabilizations", "actuation"),
)
def test_components_have_the_settings_of_their_classes(table):
    for kind in table.values():
        fields = {field.name for field in dataclasses.fields(kind) if field.metadata.get("is_setting", True)}
        assert set(setting_fields(table_of(kind))) == fields


def test_stages_have_all_solvers_and_penalties():
    fields = setting_fields(hs.Stage)
    (choice,) = {choice for _, choice in tables_of(fields["solver"].annotation, fields["solver"].metadata)}
    assert choice.names == list(SOLVERS) and all(choice.table(name) is SOLVERS[name] for name in SOLVERS)
    assert fields["sparsity"].annotation is Sparsity or Sparsity in get_args(fields["sparsity"].annotation)


@pytest.mark.parametrize(
    "cls", [*(cls for classes in SECTIONS.values() for cls in classes), Sparsity, *SOLVERS.values()]
)
def test_every_setting_is_documented(cls):
    assert not [name for name, field in setting_fields(cls).items() if not field.description]
