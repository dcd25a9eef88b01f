"""Summary page and figures of a fit: self-contained, complete and consistent with the result."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.problem import Stage
from hybridsim.identify.score import score_predictions, score_windows
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.project import fit_run
from hybridsim.project.fit_run import run_fit
from hybridsim.project.record.history import Step
from hybridsim.project.record.record import Record
from hybridsim.project.report.comparison import HELD_OUT, theta_before
from hybridsim.project.report.figures import fit_figures, window_curves
from hybridsim.project.report.result import CONVERGED, remarks_on, suggestions
from hybridsim.project.report.summary_page import summary_page
from support.fit_tasks import DAMPING, MASS, arm_task

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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arm")
    record = Record(folder / "run")
    task = arm_task(folder)
    outcome = run_fit(task, record, command=["hybridsim", "fit", "arm.toml"])
    return task, record, outcome


def test_the_page_is_self_contained(made):
    _, record, _ = made
    page = Page(record.summary_file.read_text(encoding="utf-8"))
    assert not page.open
    assert len(page.loaded) == 4 and all(source.startswith("data:image/png;base64,") for source in page.loaded)


def test_the_page_shows_parameters_scores_and_provenance(made):
    _, record, outcome = made
    words = Page(record.summary_file.read_text(encoding="utf-8")).words
    for row in outcome.result["parameters"]:
        assert row["name"] in words and f"{row['after']:.4g}" in words and row["unit"] in words
    manifest = record.manifest()
    for text in ("converged", "Held-out runs, explained", "identified.urdf", "mass [kg]", "arm.toml", "swing_3"):
        assert text in words
    assert manifest["versions"]["jax"] in words and manifest["model"]["sha256"][:12] in words


def test_the_result_is_accurate_and_better_on_held_out_runs(made):
    _, _, outcome = made
    damping, mass = (row["after"] for row in outcome.result["parameters"])
    # by the noise of 3 runs of 300 samples
    assert damping == pytest.approx(DAMPING, rel=0.05) and mass == pytest.approx(MASS, rel=0.05)
    held_out = [row for row in outcome.result["scores"] if row["runs"] == "held-out"]
    assert [(row["kind"], row["seconds"]) for row in held_out] == [
        ("explained", 0.75),
        ("predicted", 0.25),
        ("predicted", 1.0),
    ]
    for row in held_out:
        before, after = row["normalized"]["before"]["rms"], row["normalized"]["after"]["rms"]
        assert before > 5.0 and after < 2.0
        channel = row["channels"]["angle"]
        assert channel["after"] == pytest.approx(0.005 * after, rel=1e-6)


def test_only_the_identified_parameters_change_in_the_model_file(made):
    task, record, outcome = made
    mass = outcome.result["parameters"][1]["after"]
    old = task.model_file.read_text()
    new = (record.folder / "identified.urdf").read_text()
    assert f'value="{mass!r}"' in new
    assert [line for line in old.splitlines() if "inertia " in line] == [
        line for line in new.splitlines() if "inertia " in line
    ]


def test_figures_are_written_as_files(made):
    _, record, _ = made
    files = {path.name: path.read_bytes() for path in record.plots.iterdir()}
    assert set(files) == {"window_typical.png", "window_worst.png", "windows.png", "progress.png"}
    assert all(content.startswith(PNG) for content in files.values())


def test_names_from_files_cannot_change_the_page(made):
    _, record, outcome = made
    evil = "<script>alert(1)</script>'\"&"
    result = outcome.result | {
        "name": evil,
        "remarks": [evil],
        "channels": {"angle": outcome.result["channels"]["angle"] | {"unit": evil}},
        "parameters": [outcome.result["parameters"][0] | {"name": evil, "unit": evil}],
    }
    manifest = record.manifest()
    manifest["data"] = [{"file": evil, "sha256": "0" * 64}]
    manifest["runs"]["training"] = [evil]
    text = summary_page(result, manifest, {})
    assert "<script" not in text and Page(text).words.count(evil) == 13


def test_parameters_at_bounds_and_lack_of_convergence_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_run, "fit_figures", lambda *_: {})
    solver = LevenbergMarquardt(max_steps=4, cost_tolerance=0.0, step_tolerance=0.0, gradient_tolerance=0.0)
    stages = (Stage(window=0.75, solver=solver),)
    task = arm_task(tmp_path, stages=stages, held_out=0, max_damping=0.05)
    record = Record(tmp_path / "run")
    outcome = run_fit(replace(task, model_file=None), record)
    assert outcome.result["status"] == "not converged"
    remarks = " ".join(outcome.result["remarks"])
    assert "did not converge: step limit reached" in remarks and "No run was held out" in remarks
    assert "joint.damping[shoulder] ended at its upper bound, 0.05 N·m·s/rad" in remarks
    assert "at its upper bound" in Page(record.summary_file.read_text(encoding="utf-8")).words
    assert outcome.result["model"] is None and not list(record.folder.glob("identified.*"))


def windows_of(task, theta):
    thetas = np.stack([theta_before(task.problem), theta])
    return score_windows(task.problem, thetas, task.problem.held_out, 0.25)


def test_curves_are_consistent_with_the_reported_errors(made):
    task, _, outcome = made
    windows = windows_of(task, outcome.fit.theta)
    (curves,) = window_curves(windows, 0, {"angle": "rad"})
    assert curves.noise == pytest.approx(0.005) and len(curves.t) == len(curves.measured) == len(curves.after)
    error = np.sqrt(np.mean(np.square(curves.after - curves.measured))) / curves.noise
    assert error == pytest.approx(windows.residual_rms[1, 0])


def test_windows_that_diverge_are_plotted_without_simulation(made):
    task, _, outcome = made
    windows = windows_of(task, outcome.fit.theta)
    ok = windows.ok.copy()
    ok[:, 1] = False
    broken = windows._replace(ok=ok)
    assert np.isnan(broken.residual_rms[:, 1]).all()
    (curves,) = window_curves(broken, 1, {})
    assert curves.before is None and curves.after is None
    # a step whose line was lost has no residual
    history = [Step(0, 1, 2.0, 3.0), Step(0, 2, 1.0, 1.0, 1.5), Step(1, 1, None, None)]
    figures = fit_figures(broken, task.problem.held_out, "held-out", history, {})
    assert set(figures) == {"window_typical.png", "window_worst.png", "windows.png", "progress.png"}
    assert all(content.startswith(PNG) for content in figures.values())


def test_predictions_are_scored_after_the_interval_of_the_initial_state(made):
    task, _, outcome = made
    thetas = np.stack([theta_before(task.problem), outcome.fit.theta])
    found = score_predictions(task.problem, thetas, task.problem.held_out, history=0.2, horizon=0.3)
    w = found.objective.windows
    times = w.position * w.dt
    assert times[w.weight > 0.0].min() > 0.2 and np.all(found.residual_rms[1] < found.residual_rms[0])
    with pytest.raises(HybridsimError, match=r"no run is long enough to predict 1 s from the preceding 2 s"):
        score_predictions(task.problem, thetas, task.problem.held_out, history=2.0, horizon=1.0)


def test_the_page_has_no_scripts_or_links(made):
    _, record, _ = made
    text = record.summary_file.read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|url\(", text)


def test_suggestions_omit_free_parameters():
    assert suggestions(["body.mass[arm]"]).startswith(
        "Free joint.armature or joint.friction or sensor.delay, estimate sensor.bias separately for each run"
    )
    text = suggestions(["joint.armature[hinge]", "joint.friction[hinge]", "sensor.bias[angle]"])
    assert text == "Free sensor.delay, or graft a network."
    free = ["joint.armature[a]", "joint.friction[a]", "sensor.delay[b]", "sensor.bias[b]"]
    assert suggestions(free) == "Graft a network."


@pytest.mark.parametrize("after, is_reported", [(0.99, False), (1.0005, False), (1.2, True)])
def test_an_increased_error_is_reported_if_it_is_visible_in_the_digits_shown(after, is_reported):
    errors = {name: {"rms": rms, "diverged": 0} for name, rms in (("before", 1.0), ("after", after))}
    score = {"runs": HELD_OUT, "kind": "explained", "seconds": 1.0, "windows": 3, "normalized": errors}
    remarks = remarks_on({"status": CONVERGED, "parameters": [], "scores": [score], "model": None, "labels": []})
    assert any("increased the error" in remark for remark in remarks) == is_reported
