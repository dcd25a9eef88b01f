"""Summary page and figures of a fit: self-contained, complete and consistent with the result."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from jinja2 import UndefinedError

from hybridsim.identify.score import score_windows
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.identify.task import Task
from hybridsim.project import fit_run
from hybridsim.project.fit_run import run_fit
from hybridsim.project.report.comparison import theta_before_fit
from hybridsim.project.report.figures import figure_makers, window_curves
from hybridsim.project.report.summary_page import summary_page
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.history import Step
from hybridsim.viz.fit_plots import as_png
from support.fit_tasks import arm_task

PNG = b"\x89PNG\r\n\x1a\n"


class Page(HTMLParser):
    """Unclosed tags, loaded resources and text of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.loaded, self.words = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br", "!doctype"):
            self.open.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href", "action", "data")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def test_the_page_is_self_contained(finished_fit):
    _, run_folder, _ = finished_fit
    page = Page(run_folder.summary_file.read_text(encoding="utf-8"))
    assert not page.open
    assert len(page.loaded) == 4 and all(source.startswith("data:image/png;base64,") for source in page.loaded)


def test_the_page_shows_parameters_scores_and_provenance(finished_fit):
    _, run_folder, outcome = finished_fit
    words = Page(run_folder.summary_file.read_text(encoding="utf-8")).words
    for row in outcome.result["parameters"]:
        assert row["name"] in words and f"{row['after']:.4g}" in words and row["unit"] in words
    manifest = run_folder.manifest()
    score = "Held-out runs, windows of 0.75 s with fitted initial states"
    for text in ("converged", score, "identified.urdf", "mass [kg]", "arm.toml", "swing_3"):
        assert text in words
    assert manifest["versions"]["jax"] in words and manifest["model"]["sha256"][:12] in words


def test_figures_are_written_as_files(finished_fit):
    _, run_folder, _ = finished_fit
    files = {path.name: path.read_bytes() for path in run_folder.plots.iterdir()}
    assert set(files) == {"window_typical.png", "window_worst.png", "windows.png", "progress.png"}
    assert all(content.startswith(PNG) for content in files.values())


def test_names_from_files_cannot_change_the_page(finished_fit):
    _, run_folder, outcome = finished_fit
    evil = "<script>alert(1)</script>'\"&"
    result = outcome.result | {
        "name": evil,
        "remarks": [evil],
        "channels": {"angle": outcome.result["channels"]["angle"] | {"unit": evil}},
        "parameters": [outcome.result["parameters"][0] | {"name": evil, "unit": evil}],
    }
    manifest = run_folder.manifest()
    manifest["data"] = [{"file": evil, "sha256": "0" * 64}]
    manifest["runs"]["training"] = [evil]
    text = summary_page(result, manifest, {})
    assert "<script" not in text and Page(text).words.count(evil) == 13


HOSTILE = "<script>alert(1)</script> \"'&{{7*7}}{% raw %}{# #} \x00\x1b[31m\r\u202e\ud800"
VISIBLE = "<script>alert(1)</script> \"'&{{7*7}}{% raw %}{# #} \\x00\\x1b[31m\\r\\u202e\\ud800"


def with_hostile_text(value):
    """The value with every text in it replaced, names that are keys included; texts that select a layout remain."""
    if isinstance(value, dict):
        keys = ("joint.q[shoulder]", "angle", "run_0")
        return {HOSTILE if key in keys else key: with_hostile_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_hostile_text(item) for item in value]
    return HOSTILE if isinstance(value, str) and value not in ("held-out", "training", "reconstructed") else value


def test_hostile_text_anywhere_is_shown_literally(finished_fit):
    _, run_folder, outcome = finished_fit
    result = with_hostile_text(outcome.result | {"remarks": ["remark"], "run_values": {"run_0": {"angle": 1.0}}})
    result["parameters"][0] |= {"at_bound": HOSTILE}
    result["networks"] = [
        {"inputs": [HOSTILE], "outputs": [HOSTILE], "mode": HOSTILE, "free_weights": 1, "largest_change": 1.0}
    ]
    manifest = with_hostile_text(run_folder.manifest())
    text = summary_page(result, manifest, {})
    page = Page(text)
    assert not page.open and not page.loaded
    assert "<script" not in text
    # name, status, remark, channels, parameters, runs, networks, stages, model file, sources and provenance
    assert page.words.count(VISIBLE) > 40 and "alert" not in page.words.replace(VISIBLE, "")
    assert text.encode().decode() == text and not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", text)


def test_a_missing_value_is_an_error(finished_fit):
    _, run_folder, outcome = finished_fit
    manifest = run_folder.manifest()
    del manifest["seed"]
    with pytest.raises(UndefinedError, match="seed"):
        summary_page(outcome.result, manifest, {})


def without_file(task: Task) -> Task:
    """The task with a model that was not loaded from a file."""
    model = task.experiment.model
    model = replace(model, topology=replace(model.topology, source=None))
    return replace(task, experiment=replace(task.experiment, model=model))


def test_parameters_at_bounds_and_lack_of_convergence_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_run, "figure_makers", lambda *_: {})
    solver = LevenbergMarquardt(max_steps=4, cost_tolerance=0.0, step_tolerance=0.0, gradient_tolerance=0.0)
    stages = (Stage(window=0.75, solver=solver),)
    task = arm_task(tmp_path, stages=stages, held_out=0, max_damping=0.05)
    run_folder = RunFolder(tmp_path / "run")
    outcome = run_fit(without_file(task), run_folder)
    assert outcome.result["status"] == "not converged"
    remarks = " ".join(outcome.result["remarks"])
    assert "did not converge: step limit reached" in remarks and "No run was held out" in remarks
    assert "joint.damping[shoulder] ended at its upper bound, 0.05 N·m·s/rad" in remarks
    assert "at its upper bound" in Page(run_folder.summary_file.read_text(encoding="utf-8")).words
    assert outcome.result["model"] is None and not list(run_folder.path.glob("identified.*"))


def windows_of(task, theta):
    thetas = np.stack([theta_before_fit(task.problem), theta])
    return score_windows(task.problem, thetas, task.problem.held_out, 0.25)


def test_curves_are_consistent_with_the_reported_errors(finished_fit):
    task, _, outcome = finished_fit
    windows = windows_of(task, outcome.solution.theta)
    (curves,) = window_curves(windows, 0, {"angle": "rad"})
    assert curves.noise == pytest.approx(0.005) and len(curves.t) == len(curves.measured) == len(curves.after)
    error = np.sqrt(np.mean(np.square(curves.after - curves.measured))) / curves.noise
    assert error == pytest.approx(windows.residual_rms[1, 0])


def test_diverged_windows_are_plotted_without_a_simulated_curve(finished_fit):
    task, _, outcome = finished_fit
    windows = windows_of(task, outcome.solution.theta)
    ok = windows.ok.copy()
    ok[:, 1] = False
    diverged = windows._replace(ok=ok)
    assert np.isnan(diverged.residual_rms[:, 1]).all()
    (curves,) = window_curves(diverged, 1, {})
    assert curves.before is None and curves.after is None
    # a step whose line was lost has no residual
    history = [Step(0, 1, 2.0, 3.0), Step(0, 2, 1.0, 1.0, 1.5), Step(1, 1, None, None)]
    figures = figure_makers(diverged, task.problem.held_out, "held-out", history, {})
    assert set(figures) == {"window_typical.png", "window_worst.png", "windows.png", "progress.png"}
    assert all(as_png(make()).startswith(PNG) for make in figures.values())


def test_the_page_has_no_scripts_or_links(finished_fit):
    _, run_folder, _ = finished_fit
    text = run_folder.summary_file.read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|url\(", text)
