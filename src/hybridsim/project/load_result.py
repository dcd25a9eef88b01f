"""Load the result of a fit from its run folder."""

from dataclasses import replace
from pathlib import Path

from hybridsim.project.build.build import build
from hybridsim.project.fit_result import FitResult
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.schema.load import load_project
from hybridsim.project.write_project import PROJECT_FILE


def load_result(folder: str | Path, *, project: str | Path | None = None) -> FitResult:
    """Load the result of a fit, by `hybridsim fit`, `fit(..., folder=...)` or `FitResult.save`.

    Model and recordings are loaded from the files that were fitted, which must be unchanged.

    Args:
        folder: run folder.
        project: project file, if it has moved since the fit.

    Raises:
        HybridsimError: there is no result, or the inputs of the fit have changed since.
        ProjectError: a file of the fit cannot be used; carries every error.
    """
    run_folder = RunFolder(folder)
    record = run_folder.result()
    task = build(load_project(project or run_folder.origin())).task
    if project is None and run_folder.origin() == run_folder.project_file:
        # the specification lives in the run folder, and is saved with the result
        task = replace(task, project_file=PROJECT_FILE, files=run_folder.specification_files())
    run_folder.require_unchanged_inputs(task)
    return FitResult(task, run_folder.theta(), record, run_folder.history())
