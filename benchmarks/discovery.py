"""Discovery with known ground truth: success rate of recovering exactly the missing inputs.

    python -m benchmarks.discovery                                   everything, ten seeds each: about half an hour
    python -m benchmarks.discovery "damping of one joint" --seeds 2
    python -m benchmarks.discovery --json runs/discovery.json        skips cases already in the file
    python -m benchmarks.discovery --figure docs/images/weights.svg  initial weights, weights after 15 steps with the
                                                                     NeuralSim paper's penalty, and discovered weights

Errors are on held-out runs, in standard deviations of a noise of 1 mrad (or mm), even without noise.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter

import numpy as np
from tests.support.discovery_cases import CASES, NOISE

from benchmarks.report import console
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import name_hint
from hybridsim.identify.discover import Discovery, discover
from hybridsim.identify.penalty import Sparsity
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.identify.support_search import theta_with_fresh_networks
from hybridsim.viz.weights_diagram import weights_diagram

PAPER_STEPS = 15
PAPER_PENALTY = Sparsity(first_layer=1e4, l2=200.0)
"""κ‖θ[1]‖₁ + λ‖θ[1:]‖² of Equation 2 of the NeuralSim paper, for squared errors in units of the noise."""


def log(message: str) -> None:
    console.print(message, markup=False, highlight=False)


def measure(name: str, noise: float, seeds: int) -> dict:
    """Success rate and errors of discovery in one case."""
    case, start = CASES[name], perf_counter()
    discovery = discover(case.problem(noise), case.stage, seeds=range(seeds), warm_up=case.warm_up, log=log)
    exact = [{(c.graft, c.column) for c in result.best.support} == case.required for result in discovery.seed_results]
    return {
        "case": name,
        "noise": noise,
        "candidates": len(discovery.candidates),
        "seeds": seeds,
        "exact": sum(exact),
        "error_without_networks": discovery.baseline_rms,
        "error_with_all": float(np.median([result.dense.residual_rms for result in discovery.seed_results])),
        "error": float(np.median([result.best.residual_rms for result in discovery.seed_results])),
        "seconds_per_seed": (perf_counter() - start) / seeds,
    }


def figure(file: Path) -> None:
    """Draw the weights of the damped double pendulum's networks."""
    case = CASES["damping of both joints"]
    problem = case.problem(NOISE)
    initial = theta_with_fresh_networks(problem, 0)
    stage = Stage(window=case.window, solver=LevenbergMarquardt(max_steps=PAPER_STEPS), sparsity=PAPER_PENALTY)
    sparse = solve(problem.with_space(problem.space.with_initial(initial)), [stage]).theta
    discovery: Discovery = discover(problem, case.stage, seeds=[0], warm_up=case.warm_up, log=log)
    panels = [
        (title, problem.space.put(problem.setup, theta).sim.bound_blueprint())
        for title, theta in (("initial weights", initial), ("after 15 steps with the paper's penalty", sparse))
    ]
    panels.append(("discovered", discovery.blueprint().bind(dict(problem.setup.sim.axis_names))))
    file.write_text(weights_diagram(panels))
    console.print(f"written: {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="cases; by default all: " + "; ".join(CASES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path, help="output file of the results")
    parser.add_argument("--figure", type=Path, help="only draw weights into this file")
    options = parser.parse_args()
    for name in options.cases:
        if name not in CASES:
            raise HybridsimError(f"there is no case {name!r}; {name_hint(name, CASES)}")
    if options.figure:
        figure(options.figure)
        return
    rows = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    for case in options.cases or CASES:
        for noise in (0.0, NOISE):
            if any((row["case"], row["noise"], row["seeds"]) == (case, noise, options.seeds) for row in rows):
                continue
            rows.append(measure(case, noise, options.seeds))
            if options.json:
                options.json.parent.mkdir(parents=True, exist_ok=True)
                options.json.write_text(json.dumps(rows, indent=1) + "\n")
    console.print("case | noise | candidates | exact | error without networks, dense, selected | s per seed")
    for row in rows:
        errors = ", ".join(f"{row[key]:.3g}" for key in ("error_without_networks", "error_with_all", "error"))
        console.print(
            f"{row['case']} | {1e3 * row['noise']:g} | {row['candidates']} | {row['exact']} of {row['seeds']} | "
            f"{errors} | {row['seconds_per_seed']:.0f}"
        )


if __name__ == "__main__":
    main()
