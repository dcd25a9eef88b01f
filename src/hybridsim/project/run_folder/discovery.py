"""Folder of a discovery: the result of every seed as soon as it is available, then the blueprint and its diagrams.

discovery.json        manifest and results of the seeds
blueprint.toml        the remaining networks, with blueprint.safetensors
wiring.svg            wiring of the networks before and after
weights.svg           their weights before and after
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.discover import Discovery
from hybridsim.identify.support_search import FittedSupport, SeedResult
from hybridsim.identify.task import Task
from hybridsim.networks.prune import PruningUnit
from hybridsim.networks.wiring_summary import wiring_summaries
from hybridsim.project.build.blueprint_file import save_blueprint
from hybridsim.project.run_folder.folder import DISCOVERY_FILE
from hybridsim.project.run_folder.manifest import FORMAT, input_changes, manifest
from hybridsim.project.run_folder.write import is_intact, seal, write_file, write_json
from hybridsim.viz.weights_diagram import weights_diagram
from hybridsim.viz.wiring_diagram import wiring_diagram

FILES = (DISCOVERY_FILE, "blueprint.toml", "blueprint.safetensors", "wiring.svg", "weights.svg")


class DiscoveryFolder:
    """Folder with all outputs of a discovery."""

    def __init__(self, path: Path, task: Task, candidates: tuple[PruningUnit, ...], command: list[str]):
        self.path, self.task, self.candidates = path, task, candidates
        self._file = path / FILES[0]
        self._manifest = manifest(task, command)
        self._seeds: dict[int, SeedResult] = {}

    def begin(self, *, resume: bool, fresh: bool) -> dict[int, SeedResult]:
        """Prepare the folder, which must exist and be locked; returns the results of completed seeds.

        Raises:
            HybridsimError: a discovery exists and neither `resume` nor `fresh` is set, or it is to be resumed and its
                inputs or its format have changed.
        """
        if self._file.exists() and not fresh:
            if not resume:
                raise HybridsimError(f"{self._file} already exists; --resume continues it, --fresh starts over")
            try:
                content = json.loads(self._file.read_text())
                if content["manifest"]["format"] != FORMAT:
                    raise HybridsimError(
                        f"{self._file} does not have format {FORMAT}, which this version of hybridsim reads; use the "
                        "version that wrote it, or start over with --fresh"
                    )
                if not is_intact(content):
                    raise ValueError("its content does not match its hash")
                if changes := input_changes(content["manifest"], self._manifest):
                    raise HybridsimError(
                        f"cannot resume {self._file}, because its inputs have changed: {'; '.join(changes)}"
                    )
                self._seeds = {data["seed"]: self._seed_from_json(data) for data in content["seeds"]}
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise HybridsimError(f"{self._file} cannot be read ({error}); start over with --fresh") from None
        for name in (*FILES, "lock"):
            if (self.path / name).is_symlink():
                raise HybridsimError(f"{self.path / name} is a symbolic link, which is not followed; remove it")
        if not self._file.exists():
            # without discovery.json, nothing in the folder was written by a discovery
            names = sorted(path.name for path in self.path.iterdir() if path.suffix != ".part")
            if foreign := [name for name in names if name != "lock"]:
                message = f"{self.path} contains no discovery, but other files such as {foreign[0]}"
                raise HybridsimError(f"{message}; choose another folder with --out")
        self._save()
        for name in FILES[1:]:
            (self.path / name).unlink(missing_ok=True)
        return dict(self._seeds)

    def save_seed(self, result: SeedResult) -> None:
        """Save the result of a seed."""
        self._seeds[result.seed] = result
        self._save()

    def finish(self, discovery: Discovery) -> dict[str, Any]:
        """Write the blueprint and its diagrams; returns a summary as JSON data."""
        sim = self.task.problem.setup.sim
        dense, sparse = discovery.blueprint(dense=True), discovery.blueprint()
        bound = [
            (title, blueprint.bind(dict(sim.axis_names)))
            for title, blueprint in (("all inputs", dense), ("selected inputs", sparse))
        ]
        write_file(
            self.path / "wiring.svg", wiring_diagram([(title, wiring_summaries(networks)) for title, networks in bound])
        )
        write_file(self.path / "weights.svg", weights_diagram(bound))
        if sparse.grafts:
            save_blueprint(sparse, self.path / "blueprint.toml", sim)
        summary = {
            "name": self.task.name,
            "rms_without_networks": discovery.baseline_rms,
            "rms": discovery.final.residual_rms,
            "converged": discovery.final.has_converged,
            "rms_with_all_inputs": discovery.dense.residual_rms,
            "support": sorted(str(unit) for unit in discovery.support),
            "inputs": {str(unit): share for unit, share in discovery.frequency.items()},
            "sites": {", ".join(outputs): share for outputs, share in discovery.site_frequency.items()},
            "seeds": [sorted(str(c) for c in result.best.support) for result in discovery.seed_results],
        }
        self._save(summary=summary)
        return summary

    def _save(self, **further: Any) -> None:
        seeds = [self._seed_to_json(seed) for seed in self._seeds.values()]
        write_json(self._file, seal({"manifest": self._manifest, "candidates": self._names, "seeds": seeds, **further}))

    @property
    def _names(self) -> list[str]:
        return [str(unit) for unit in self.candidates]

    def _seed_to_json(self, result: SeedResult) -> dict[str, Any]:
        def to_json(fitted: FittedSupport) -> dict[str, Any]:
            support = [k for k, unit in enumerate(self.candidates) if unit in fitted.support]
            return {"support": support, "theta": fitted.theta.tolist(), "rms": fitted.residual_rms}

        path = [to_json(fitted) for fitted in result.path]
        return {"seed": result.seed, "dense": to_json(result.dense), "path": path, "best": to_json(result.best)}

    def _seed_from_json(self, data: dict[str, Any]) -> SeedResult:
        def from_json(entry: dict[str, Any]) -> FittedSupport:
            if not all(0 <= k < len(self.candidates) for k in entry["support"]):
                raise ValueError("a support names a candidate that does not exist")
            support = frozenset(self.candidates[k] for k in entry["support"])
            residual_rms = float("inf") if entry["rms"] is None else entry["rms"]
            return FittedSupport(support, np.array(entry["theta"]), residual_rms)

        path = tuple(from_json(entry) for entry in data["path"])
        return SeedResult(data["seed"], from_json(data["dense"]), path, from_json(data["best"]))
