"""A fit that tests of reports share."""

import pytest

from hybridsim.project.fit_run import run_fit
from hybridsim.project.run_folder.folder import RunFolder
from support.fit_tasks import arm_task


@pytest.fixture(scope="session")
def finished_fit(tmp_path_factory):
    """Task, run folder and outcome of a fit of the arm."""
    folder = tmp_path_factory.mktemp("arm")
    run_folder = RunFolder(folder / "run")
    task = arm_task(folder)
    outcome = run_fit(task, run_folder, command=["hybridsim", "fit", "arm.toml"])
    return task, run_folder, outcome
