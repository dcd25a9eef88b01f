"""The record of a discovery: what every seed led to, as soon as it is known, then the blueprint and its picture.

discovery.json        what it is made of, and what seeds chose so far
blueprint.toml        the networks that are left, ready to use, with blueprint.safetensors
wiring.svg            what networks read before and after
weights.svg           and their weights
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.discover import Discovery
from hybridsim.identify.support_search import Candidate, SeedResult
from hybridsim.networks.prune import Column
from hybridsim.networks.wiring_summary import wirings
from hybridsim.project.build.blueprint_file import save_blueprint
from hybridsim.project.build.task import Task
from hybridsim.project.record.manifest import changed, manifest
from hybridsim.project.record.record import DISCOVERY_FILE
from hybridsim.project.record.write import write_file, write_json
from hybridsim.viz.weights_picture import weights_picture
from hybridsim.viz.wiring_picture import wiring_picture

FILES = (DISCOVERY_FILE, "blueprint.toml", "blueprint.safetensors", "wiring.svg", "weights.svg")


class DiscoveryRecord:
    """A folder that a discovery writes into."""

    def __init__(self, folder: Path, task: Task, columns: tuple[Column, ...], command: list[str]):
        self.folder, self.task, self.columns = folder, task, columns
        self._file = folder / FILES[0]
        self._manifest = manifest(task, command)
        self._seeds: dict[int, SeedResult] = {}

    def begin(self, *, resume: bool, fresh: bool) -> dict[int, SeedResult]:
        """What is known already.

        Raises:
            HybridsimError: there is a discovery, and nothing was said about it; or it is of something else.
        """
        if self._file.exists() and not fresh:
            if not resume:
                raise HybridsimError(f"{self._file} is there already; --resume goes on with it, --fresh begins again")
            try:
                found = json.loads(self._file.read_text())
                if different := changed(found["manifest"], self._manifest):
                    raise HybridsimError(
                        f"{self._file} is of something else, because this has changed since: {'; '.join(different)}"
                    )
                self._seeds = {one["seed"]: self._chosen(one) for one in found["seeds"]}
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise HybridsimError(f"{self._file} cannot be read ({error}); begin again with --fresh") from None
        for name in FILES[1:]:
            (self.folder / name).unlink(missing_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        return dict(self._seeds)

    def keep(self, chosen: SeedResult) -> None:
        """Write down what a seed led to."""
        self._seeds[chosen.seed] = chosen
        seeds = [self._told(one) for one in self._seeds.values()]
        write_json(self._file, {"manifest": self._manifest, "columns": self._names, "seeds": seeds})

    def finish(self, found: Discovery) -> dict[str, Any]:
        """Write the blueprint and its picture; returns what was found, as plain numbers and words."""
        sim = self.task.problem.setup.sim
        dense, sparse = found.blueprint(dense=True), found.blueprint()
        bound = [
            (title, blueprint.bind(dict(sim.axis_names)))
            for title, blueprint in (("all inputs", dense), ("what is left", sparse))
        ]
        write_file(self.folder / "wiring.svg", wiring_picture([(title, wirings(found)) for title, found in bound]))
        write_file(self.folder / "weights.svg", weights_picture(bound))
        if sparse.grafts:
            save_blueprint(sparse, self.folder / "blueprint.toml", sim)
        facts = {
            "name": self.task.name,
            "error_without_networks": found.plain,
            "error": found.settled.error,
            "error_with_all_inputs": found.dense.error,
            "support": sorted(str(column) for column in found.support),
            "inputs": {str(column): share for column, share in found.frequency.items()},
            "sites": {", ".join(outputs): share for outputs, share in found.sites.items()},
            "seeds": [sorted(str(c) for c in one.best.support) for one in found.seeds],
        }
        seeds = [self._told(one) for one in self._seeds.values()]
        content = {"manifest": self._manifest, "columns": self._names, "seeds": seeds, "found": facts}
        write_json(self._file, content)
        return facts

    @property
    def _names(self) -> list[str]:
        return [str(column) for column in self.columns]

    def _told(self, chosen: SeedResult) -> dict[str, Any]:
        def candidate(one: Candidate) -> dict[str, Any]:
            support = [k for k, column in enumerate(self.columns) if column in one.support]
            return {"support": support, "theta": one.theta.tolist(), "error": one.error}

        path = [candidate(one) for one in chosen.path]
        return {"seed": chosen.seed, "dense": candidate(chosen.dense), "path": path, "best": candidate(chosen.best)}

    def _chosen(self, told: dict[str, Any]) -> SeedResult:
        def candidate(one: dict[str, Any]) -> Candidate:
            support = frozenset(self.columns[k] for k in one["support"])
            return Candidate(support, np.array(one["theta"]), float("inf") if one["error"] is None else one["error"])

        path = tuple(candidate(one) for one in told["path"])
        return SeedResult(told["seed"], candidate(told["dense"]), path, candidate(told["best"]))
