"""Result of a fit: the fitted model with everything that was learned about it."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from hybridsim.core.console import as_text
from hybridsim.core.errors import DataError, FolderError, HybridsimError, Problem
from hybridsim.data.recording import Recording, as_recordings
from hybridsim.identify.experiment import Experiment
from hybridsim.identify.score import WindowScores
from hybridsim.identify.task import Task
from hybridsim.io.edit_xml import Changes
from hybridsim.io.export import export, has_format_of
from hybridsim.model.model import Model
from hybridsim.project.fit_run import write_report
from hybridsim.project.report.comparison import HELD_OUT, TRAINING
from hybridsim.project.report.evaluate import scored_windows, windows_to_plot
from hybridsim.project.report.figures import figure_makers
from hybridsim.project.report.prediction import Prediction, predict
from hybridsim.project.report.result import CONVERGED, NOT_COMPUTED, UNDETERMINED
from hybridsim.project.report.result_text import result_text
from hybridsim.project.run_folder.export_fit import without_additions
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.history import History, Step
from hybridsim.project.run_folder.lock import folder_lock
from hybridsim.project.run_folder.manifest import manifest
from hybridsim.project.write_project import recorded_task, warn_if_unrecorded
from hybridsim.sim.simulator import Simulator
from hybridsim.viz.plots import check_image_path
from hybridsim.viz.save_figure import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class FitResult:
    """Result of a fit. `print` shows parameters and residuals before and after.

    Attributes:
        task: experiment, runs, free parameters and stages.
        theta: estimated parameters θ.
        record: the result as data, as in `result.json` of a run folder.
        history: the steps of the fit.
    """

    def __init__(
        self,
        task: Task,
        theta: Float[np.ndarray, " n"],
        record: dict[str, Any],
        history: Sequence[Step],
        windows: WindowScores | None = None,
    ):
        self.task, self.theta, self.record, self.history = task, theta, record, tuple(history)
        self._windows = windows

    def __str__(self) -> str:
        return as_text(result_text(self.record))

    def __repr__(self) -> str:
        return f"FitResult({self.record['name']!r}, {self.record['message']!r})"

    @property
    def experiment(self) -> Experiment:
        """The experiment, before the fit."""
        return self.task.experiment

    @property
    def has_converged(self) -> bool:
        """Whether the last stage converged."""
        return self.record["status"] == CONVERGED

    @property
    def parameters(self) -> dict[str, float]:
        """Estimated values by name, without the weights of networks."""
        return {row["name"]: row["after"] for row in self.record["parameters"]}

    @property
    def run_parameters(self) -> dict[str, dict[str, float]]:
        """Estimated values of the parameters that are estimated separately for each run, by run and name."""
        return self.record["run_values"]

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard errors of the estimated values by name; infinite where the recordings do not determine them.

        Values at a bound have none. Where none are computed (continuity, windows with common samples, measured initial
        states, more than 500 free parameters and weights), a remark of the result says why.
        """
        rows = [row for row in self.record["parameters"] if row["std_kind"] != NOT_COMPUTED]
        return {row["name"]: np.inf if row["std_kind"] == UNDETERMINED else row["std"] for row in rows}

    @cached_property
    def simulator(self) -> Simulator:
        """The simulator with the estimated parameters and networks."""
        return self.task.problem.space.put(self.task.problem.setup, self.theta).sim

    @property
    def model(self) -> Model:
        """The model with the estimated parameters, without additions of the experiment such as its floor."""
        return without_additions(self.task, self.simulator.model)

    def predict(self, recordings: Recording | Sequence[Recording], horizon: float = 1.0) -> Prediction:
        """Predict recordings, with initial states estimated from the samples before each prediction.

        Args:
            recordings: new recordings.
            horizon: prediction horizon [s].

        Raises:
            DataError: the recordings cannot be used; carries every error.
        """
        problems: list[Problem] = []
        runs = self.experiment.runs(as_recordings("recordings", recordings), problems)
        if problems:
            raise DataError(dict.fromkeys(problems))
        return predict(self.task, self.theta, runs, horizon)

    def plot(self, file: str | Path | None = None, *, kind: str = "typical") -> "Figure":
        """Plot the fit, and save the figure if a file is named.

        Args:
            file: image file; its extension determines the format.
            kind: `typical` or `worst`, a held-out window with measurements and simulations before and after the fit;
                `windows`, residuals of all windows; `progress`, residuals over the steps.
        """
        held_out = self.task.problem.held_out
        runs, label = (held_out, HELD_OUT) if held_out else (self.task.problem.train, TRAINING)
        windows = self._scored_windows()
        if windows is None:
            raise HybridsimError("the windows of this fit could not be scored, so that there is nothing to plot")
        makers = figure_makers(windows, runs, label, self.history, self.task.units)
        names = {name.removesuffix(".png").removeprefix("window_"): make for name, make in makers.items()}
        if kind == "worst" and kind not in names:
            kind = "typical"  # there is only one window
        if kind == "windows" and kind not in names:
            raise ValueError("there is only one window; plot it with kind='typical'")
        if kind not in names:
            raise ValueError(f"unknown kind of plot {kind!r}; choose one of {', '.join(names)}")
        figure = names[kind]()
        if file is not None:
            check_image_path(file)
            save_figure(figure, file)
        return figure

    def export(self, file: str | Path) -> Changes:
        """Write the estimated parameters into a copy of the model file; everything else in it stays untouched.

        Args:
            file: file to write.

        Returns:
            The changes; `print` shows a table.

        Raises:
            HybridsimError: the model was not loaded from a file.
            ModelError: the file has changed, or its format cannot represent the parameters.
            FileError: the file cannot be written.
        """
        source = self.experiment.model.source
        if source is not None and Path(file).resolve() == Path(source.file).resolve():
            raise HybridsimError(f"{file} is the file that the model was loaded from; choose another name")
        if source is None:
            raise HybridsimError(
                f"the model {self.experiment.model.name!r} was not loaded from a file; hybridsim.convert(result.model, "
                f"{str(file)!r}) writes a new one"
            )
        if not has_format_of(file, source.file):
            raise HybridsimError(
                f"{file} does not have the format of {source.file}; hybridsim.convert(result.model, {str(file)!r}) "
                "converts the model"
            )
        return export(source.file, self.model, file, **source.options)

    def save(self, folder: str | Path) -> None:
        """Save the result with its plots, exported model and summary page, as `hybridsim fit` does.

        `load_result` loads it again.

        Args:
            folder: run folder to create.

        Raises:
            HybridsimError: the folder contains something else, or cannot be written.
        """
        run_folder = RunFolder(folder)
        run_folder.make_folder()
        with folder_lock(run_folder.path):
            if run_folder.exists:
                message = f"{run_folder.path} already contains a fit"
                raise FolderError(message, python="choose another folder", command="choose another folder")
            task = recorded_task(self.task)
            warn_if_unrecorded(task)
            try:
                run_folder.begin(manifest(task, ()), task.project_text, task.files)
                history = History(run_folder.history_file)
                for step in self.history:
                    history.append(step)
                write_report(task, run_folder, self.theta, self.record, self._scored_windows(), self.history)
            except BaseException:
                # the folder was empty: what it contains now is a part of this result
                run_folder.remove()
                raise

    def _scored_windows(self) -> WindowScores | None:
        """Windows to be plotted; None if they cannot be scored."""
        if self._windows is None and self.record["scores"]:
            self._windows = windows_to_plot(scored_windows(self.task, self.theta))
        return self._windows
