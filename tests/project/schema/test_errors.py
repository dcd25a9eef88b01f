"""Malformed projects: each error is reported with its line and fix, never as a traceback."""

import json

import pytest

from hybridsim.cli import main
from hybridsim.project.build.build import build
from hybridsim.project.schema.load import load_project
from support.small_projects import PROJECT, problems_of, write_project

MODEL, DATA, CHANNEL, FREE = "dt = 0.01\n", "held_out = 0.0\n", "noise = 0.001\n", "bounds = [0.0, 1.0]\n"
"""Last lines of the sections: 3, 7, 13 and 17."""


def append_to_section(end: str, text: str) -> str:
    """The project with additional lines at the end of a section."""
    return PROJECT.replace(end, f"{end}{text}\n")


def replace_line(line: str, text: str) -> str:
    """The project with a line replaced."""
    assert line in PROJECT
    return PROJECT.replace(line, text)


MALFORMED = {
    # TOML syntax
    "no quotes": (replace_line('"pendulum"', "pendulum"), 2,
        "invalid TOML", 'put text in quotes: built_in = "pendulum"'),
    "colon": (append_to_section(FREE, "map: log"), 18, "invalid TOML", "with an equals sign"),
    "python words": (append_to_section(DATA, "several_runs = True"), 8, "invalid TOML", "write true or false"),
    "open list": (append_to_section(FREE, "prior = [1.0,"), 18, "invalid TOML", "a pair is key = 1.0"),
    "section twice": (PROJECT + "[model]\n", 18, "cannot declare", "a section begins with"),
    "deep": ("x = " + "[" * 9999, 1, "nested too deeply", "three levels"),
    # sections and keys
    "unknown section": (replace_line("[data]", "[dat]"), 5, "there is no section 'dat'", "did you mean 'data'"),
    "missing section": (PROJECT[PROJECT.index("[data]") :], 1, "there is no section [model]", "add it: The mechanism"),
    "one bracket": (replace_line("[[free]]", "[free]"), 15,
        "section 'free' is written as a single table", "write [[free]]"),
    "two brackets": (replace_line("[data]", "[[data]]"), 5, "section 'data' is written as", "write [data]"),
    "unknown key": (append_to_section(MODEL, "integrater = 'rk4'"), 4,
        "[model] has no key 'integrater'", "did you mean 'integrator'?"),
    "key of another section": (append_to_section(FREE, "unwrap = true"), 18,
        "[[free]] 1 ('joint.damping[*]') has no key 'unwrap'", "valid names are 'name', 'bounds', 'initial'"),
    "renamed key": (append_to_section(FREE, "start = 1.0"), 18,
        "[[free]] 1 ('joint.damping[*]') has no key 'start'", "it is now called 'initial'"),
    "missing key": (replace_line('measures = "joint.q[joint0]"\n', ""), 9,
        "[[channel]] 1 ('angle') has no 'measures'", "add it"),
    # types and ranges
    "text for number": (replace_line("dt = 0.01", 'dt = "0.01"'), 3,
        "dt of [model] must be a number, not '0.01'", "Time step"),
    "no time": (replace_line("dt = 0.01", "dt = 0"), 3, "dt of [model] must be greater than 0, not 0", "Time step"),
    "infinite": (replace_line("dt = 0.01", "dt = inf"), 3, "must be finite", "Time step"),
    "truth for number": (replace_line("noise = 0.001", "noise = true"), 13,
        "noise of [[channel]] 1", "Standard deviation"),
    "negative noise": (replace_line("noise = 0.001", "noise = -1"), 13,
        "must be greater than 0 or 'estimate', not -1", "Standard deviation"),
    "share of one": (replace_line("held_out = 0.0", "held_out = 1.0"), 7,
        "must be less than 1 or a list", "their fraction"),
    "number in names": (replace_line('["run.csv"]', '["run.csv", 3]'), 6,
        "files[1] of [data] must be text in quotes", "Files of recordings"),
    "empty list": (replace_line('["run.csv"]', "[]"), 6, "must be a nonempty list", "Files of recordings"),
    "no bounds": (replace_line("[0.0, 1.0]", "[]"), 17,
        "bounds of [[free]] 1 ('joint.damping[*]') has 0 entries", "Lower and upper bound"),
    "entries that are none": ("free = [3]\n" + PROJECT[: PROJECT.index("[[free]]")], 1,
        "section 'free' is written as 3", "write [[free]]"),
    "one bound": (replace_line("[0.0, 1.0]", "[0.0]"), 17, "has 1 entry", "Lower and upper bound"),
    "three bounds": (replace_line("[0.0, 1.0]", "[0.0, 1.0, 2.0]"), 17, "has 3 entries", "Lower and upper bound"),
    "bound is no number": (replace_line("[0.0, 1.0]", "[0.0, nan]"), 17, "must not be nan", "write inf or -inf"),
    "date": (replace_line('column = "q"', "column = 1979-05-27"), 12, "column of [[channel]] 1", "Column of the files"),
    "choice": (append_to_section(FREE, 'map = "logarithm"'), 18,
        "map of [[free]] 1", "valid values are linear, log, interval"),
    "half a step": (PROJECT + "[[stage]]\nsolver = { max_steps = 1.5 }\n", 19,
        "must be an integer, not 1.5", "Maximum number of steps"),
    "seed": (PROJECT + "[run]\nseed = -1\n", 19, "seed of [run] must be at least 0, not -1", "Random seed"),
    "no units": (f"{PROJECT}[[graft]]\noutputs = 'joint.tau'\ninputs = 'q'\n[graft.network]\nhidden = [8,\n0]\n", 23,
        "hidden[1] of network of [[graft]] 1 ('joint.tau') must be at least 1, not 0", "Units of the hidden layers"),
    "network of no kind": (f"{PROJECT}[[graft]]\noutputs = 'joint.tau'\ninputs = 'q'\n"
        "[graft.network]\nkind = 'disipative'\n", 22, "kind of network of [[graft]] 1", "did you mean 'dissipative'?"),
    "key of another network": (f"{PROJECT}[[graft]]\noutputs = 'joint.tau'\ninputs = 'q'\n"
        "[graft.network]\nkind = 'conservative'\ndamping_scale = 1.0\n", 23, "has no key 'damping_scale'",
        "did you mean 'input_scale'?"),
    # keys that do not go together
    "two mechanisms": (append_to_section(MODEL, 'file = "a.urdf"'), 1,
        "[model] specifies two mechanisms", "write file"),
    "option of files": (append_to_section(MODEL, 'base = "free"'), 4,
        "base of [model] applies to model files only", "remove it"),
    "solver": (PROJECT + "[[stage]]\nsolver = 'lmm'\n", 19,
        "solver of [[stage]] 1 has the invalid value 'lmm'", "did you mean 'lm'?"),
    "setting of another solver": (PROJECT + "[[stage]]\nsolver = { name = 'adam', initial_damping = 1.0 }\n", 19,
        "solver of [[stage]] 1 has no key 'initial_damping'", "valid names are"),
    "continuity of measured initial states": (
        PROJECT + "[[stage]]\ninitial_states = 'measured'\ncontinuity = [0.1, 0.1]\n", 20, "continuity", "prior"),
    "contact": (append_to_section(MODEL, 'contact = "impulsive"'), 4,
        "contact of [model] has the invalid value 'impulsive'", "did you mean 'impulse'?"),
    "setting of another contact": (PROJECT + "[model.contact]\nkind = 'impulse'\nstiffness = 1.0\n", 20,
        "[model.contact] has no key 'stiffness'", "did you mean 'softness'?"),
    "integrator of contact": (append_to_section(MODEL, 'integrator = "rk4"\ncontact = "impulse"'), 4,
        "must be euler", "compliant"),
    "no drive": (PROJECT + "[[command]]\ncolumn = 'u'\n", 18,
        "must have exactly one target", "actuator, joint and input"),
    "column and estimate": (append_to_section(CHANNEL, "velocity_of = 'angle'"), 9,
        "both a column and velocity_of", "either column or velocity_of"),
    "files of several runs": (replace_line('["run.csv"]', '[["run.csv"]]\nseveral_runs = true'), 6,
        "a run of several files", "remove"),
    "time twice": (append_to_section(DATA, "time = 't'\nsample_interval = 0.1"), 9,
        "sample_interval of [data] applies to files", "remove one"),
    # names and places
    "unit": (append_to_section(CHANNEL, "unit = 'degree'"), 14,
        "unit 'degree' of 'angle' is unknown", "did you mean 'deg'"),
    "unwrapped length": (append_to_section(CHANNEL, "unit = 'mm'\nunwrap = true"), 15, "is to be unwrapped", "rad"),
    "time unit": (append_to_section(DATA, "time_unit = 'kg'"), 8, "unit 'kg' of 'time' is unknown", "units are"),
    "name twice": (PROJECT + "[[channel]]\nname = 'angle'\nmeasures = 'joint.qd[joint0]'\ncolumn = 'u'\n", 18,
        "2 channels are named 'angle'", "give each channel a unique name"),
    "no file": (replace_line('["run.csv"]', '["ran*.csv"]'), 6,
        "no file matches 'ran*.csv'", "did you mean 'run.csv'?"),
    "long name": (replace_line("run.csv", "x" * 9999), 6, "cannot be expanded", "write names"),
    "zero": (replace_line("run.csv", "run\\u0000.csv"), 6, "files[0] of [data] contains a null character", "remove"),
    "out elsewhere": (PROJECT + "[run]\nout = '../elsewhere'\n", 19, "is outside of the project's folder", "inside"),
    "name with slash": (PROJECT + "[run]\nname = 'a/b'\n", 19, "not a valid folder name", "slashes"),
    # what the model or the recordings do not have
    "mechanism": (replace_line('"pendulum"', '"pendulun"'), 2,
        "no built-in mechanism 'pendulun'", "did you mean 'pendulum'"),
    "model file": (replace_line('built_in = "pendulum"', 'file = "a.urdf"'), 2, "file of [model]", ""),
    "joint": (replace_line("joint.q[joint0]", "joint.q[joint1]"), 11,
        "nothing is named 'joint1'; did you mean 'joint0'", "taps"),
    "quantity": (replace_line("joint.q[joint0]", "joint.p[joint0]"), 11, "there is no quantity 'joint.p'", "taps"),
    "column": (replace_line('column = "q"', 'column = "qq"'), 12,
        "there is no column 'qq', which channel 'angle' refers to", "did you mean 'q'?"),
    "time column": (append_to_section(DATA, 'time = "stamp"'), 8,
        "there is no time column 'stamp'", "sample_interval = 0.001"),
    "data file": (replace_line('["run.csv"]', '["ran.csv"]'), 6, "the file does not exist", "did you mean 'run.csv'?"),
    "run": (replace_line("held_out = 0.0", "held_out = ['rum']"), 7, "no run is named 'rum'", "did you mean 'run'?"),
    "parameter": (replace_line("joint.damping[*]", "joint.dampening[*]"), 15,
        "no parameter 'joint.dampening'", "joint.damping"),
    "free twice": (PROJECT + "[[free]]\nname = 'joint.damping[joint0]'\n", 18, "is free twice", "list it once"),
    "initial value out of bounds": (append_to_section(FREE, "initial = 3.0"), 15,
        "initial value 3, outside its bounds", "specify initial or other bounds"),
    "nothing free": (PROJECT[: PROJECT.index("[[free]]")], 1, "there are no free parameters", "joint.damping"),
    "actuator": (PROJECT + "[[command]]\nactuator = 'motor'\ncolumn = 'u'\n", 19,
        "no actuator is named 'motor'", "joint0"),
    "driven joint": (PROJECT + "[[command]]\njoint = 'elbow'\ncolumn = 'u'\n", 19,
        "no joint that can be actuated is named 'elbow'", "joint0"),
    "tap": (PROJECT + "[[graft]]\noutputs = 'joint.taw'\ninputs = 'joint.q'\n", 19, "no quantity 'joint.taw'", "taps"),
    "input of tap": (PROJECT + "[[graft]]\noutputs = 'joint.tau'\ninputs = ['joint.q',\n'input.wind']\n", 21,
        "'wind'", "taps"),
    "order of taps": (PROJECT + "[[graft]]\noutputs = 'joint.tau'\ninputs = 'joint.qdd'\n", 20,
        "is computed after output", "taps"),
    "pair": (replace_line('"pendulum"', '"cube"') + "[model.contact]\nkind = 'impulse'\nfriction = { foot = 0.5 }\n",
        20, "no pair of shapes matches 'foot' of friction", "contact.md"),
}  # fmt: skip
"""Text, line, and substrings of message and fix."""


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_project_is_explained(name, tmp_path, monkeypatch, capsys):
    text, line, message, fix = MALFORMED[name]
    path = write_project(tmp_path, text)
    # independent of the command that reads the project
    monkeypatch.setattr(main, "_dispatch", lambda arguments: bool(build(load_project(arguments[0]))))
    assert main.run([str(path), "--json"]) == 1
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert problems and all(problem["code"] and problem["fix"] for problem in problems), problems
    matching = [problem for problem in problems if message in problem["message"] and fix in problem["fix"]]
    assert [(problem["file"], problem["line"]) for problem in matching] == [(str(path), line)], problems


def test_all_schema_errors_are_reported_in_order(tmp_path):
    text = PROJECT.replace("dt = 0.01", "dt = -1\ncolour = 'red'").replace('column = "q"', "column = 3")
    text = text.replace("[0.0, 1.0]", '["a", "b"]') + "[[stage]]\nlosss = 'huber'\n"
    problems = problems_of(load_project, write_project(tmp_path, text))
    assert [problem.line for problem in problems] == [3, 4, 13, 18, 20]


def test_all_errors_of_model_and_data_are_reported(tmp_path):
    text = PROJECT.replace("joint.q[joint0]", "joint.q[elbow]").replace('column = "q"', 'column = "qq"')
    text = text.replace("joint.damping", "joint.damp")
    text += "[[command]]\njoint = 'elbow'\ncolumn = 'u'\n[[graft]]\noutputs = 'joint.taw'\ninputs = 'joint.q'\n"
    problems = problems_of(build, load_project(write_project(tmp_path, text)))
    assert [problem.line for problem in problems] == [11, 12, 15, 19, 22]


@pytest.mark.parametrize("raw", [b"\xff\xfe[model]", b"[model]\n# caf\xe9\n", b"x" * 2**21])
def test_binary_files_are_refused(raw, tmp_path):
    path = tmp_path / "project.toml"
    path.write_bytes(raw)
    assert [problem.code for problem in problems_of(load_project, path)] == ["project.syntax"]


def test_unreadable_files_are_reported(tmp_path):
    write_project(tmp_path)
    (missing,) = problems_of(load_project, tmp_path / "projekt.toml")
    assert missing.code == "file.missing" and "project.toml" in missing.fix
    assert problems_of(load_project, tmp_path)[0].code == "file.directory"
