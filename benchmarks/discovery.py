"""What discovery finds where it is known what is missing: how often exactly that, and nothing else.

    python -m benchmarks.discovery                                   everything, ten seeds each: about half an hour
    python -m benchmarks.discovery "damping of one joint" --seeds 2
    python -m benchmarks.discovery --json runs/discovery.json        what is in that file already is not done again
    python -m benchmarks.discovery --figure docs/images/weights.svg  weights at first, after 15 steps with the NeuralSim
                                                                     paper's penalty, and of what was discovered

Errors are of runs that no fit has seen, in standard deviations of a noise of 1 mrad (or mm), also where there is none.
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
from hybridsim.identify.fit import fit
from hybridsim.identify.penalty import Sparsity
from hybridsim.identify.problem import Stage
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.support_search import theta_with_fresh_networks
from hybridsim.viz.weights_picture import weights_picture

PAPERS_STEPS = 15
PAPERS_PENALTY = Sparsity(first_layer=1e4, upper_layers=200.0)
"""κ‖θ[1]‖₁ + λ‖θ[1:]‖² of the NeuralSim paper's Equation 2, by squared errors in units of the noise."""


def said(words: str) -> None:
    console.print(words, markup=False, highlight=False)


def measured(case: str, noise: float, seeds: int) -> dict:
    """How often exactly what is missing was found."""
    made, begin = CASES[case], perf_counter()
    found = discover(made.problem(noise), made.stage, seeds=range(seeds), warm_up=made.warm_up, tell=said)
    exact = [{(c.graft, c.column) for c in one.best.support} == made.wanted for one in found.seeds]
    return {
        "case": case,
        "noise": noise,
        "candidates": len(found.columns),
        "seeds": seeds,
        "exact": sum(exact),
        "error_without_networks": found.plain,
        "error_with_all": float(np.median([one.dense.error for one in found.seeds])),
        "error": float(np.median([one.best.error for one in found.seeds])),
        "seconds_per_seed": (perf_counter() - begin) / seeds,
    }


def figure(file: Path) -> None:
    """Draw the weights of the damped double pendulum's networks."""
    made = CASES["damping of both joints"]
    of = made.problem(NOISE)
    start = theta_with_fresh_networks(of, 0)
    stage = Stage(window=made.window, solver=LevenbergMarquardt(max_steps=PAPERS_STEPS), sparsity=PAPERS_PENALTY)
    sparse = fit(of.with_space(of.space.with_initial(start)), [stage]).theta
    found: Discovery = discover(of, made.stage, seeds=[0], warm_up=made.warm_up, tell=said)
    panels = [
        (title, of.space.put(of.setup, theta).sim.bound_blueprint())
        for title, theta in (("first weights", start), ("after 15 steps with the paper's penalty", sparse))
    ]
    panels.append(("discovered", found.blueprint().bind(dict(of.setup.sim.axis_names))))
    file.write_text(weights_picture(panels))
    console.print(f"written: {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="what is missing; all by default: " + "; ".join(CASES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--figure", type=Path, help="draw weights into this file, and measure nothing")
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
            rows.append(measured(case, noise, options.seeds))
            if options.json:
                options.json.parent.mkdir(parents=True, exist_ok=True)
                options.json.write_text(json.dumps(rows, indent=1) + "\n")
    console.print("case | noise | candidates | exact | error without, with all, with what is left | s per seed")
    for row in rows:
        errors = ", ".join(f"{row[key]:.3g}" for key in ("error_without_networks", "error_with_all", "error"))
        console.print(
            f"{row['case']} | {1e3 * row['noise']:g} | {row['candidates']} | {row['exact']} of {row['seeds']} | "
            f"{errors} | {row['seconds_per_seed']:.0f}"
        )


if __name__ == "__main__":
    main()
