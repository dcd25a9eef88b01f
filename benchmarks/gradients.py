"""Gradient benchmark: hybridsim and its peers on the same workloads, in the same run.

    python -m benchmarks.gradients              everything: about half an hour
    python -m benchmarks.gradients --quick      the double pendulum alone, without peers that compile for minutes
    python -m benchmarks.gradients --resume     go on where an earlier run was stopped

Every peer is a program of its own (`python -m benchmarks.peers.mjx_peer --help`) and is skipped where its package is
not installed: pip install 'hybridsim[peers]'. Results are in the JSON file as soon as they are measured. Times are CPU
times on one thread, best of several calls; see docs/benchmarks.md.
"""

import argparse
from pathlib import Path

from benchmarks import figure as drawing
from benchmarks import report, targets
from benchmarks.contact_workloads import FIVE_LINKS
from benchmarks.running import Record, measure, parts_of

PEERS = {
    "native": "benchmarks.ours",
    "first-call": "benchmarks.ours_first_call",
    "scaling": "benchmarks.ours_scaling",
    "layers": "benchmarks.ours_layers",
    "casadi": "benchmarks.peers.casadi_plain",
    "casadi-by-hand": "benchmarks.peers.casadi_tuned",
    "mujoco": "benchmarks.peers.mujoco_differences",
    "pinocchio": "benchmarks.peers.pinocchio_aba",
    "xla": "benchmarks.ours_xla",
    "mjx": "benchmarks.peers.mjx_peer",
    "brax": "benchmarks.peers.brax_peer",
    "native-contact": "benchmarks.ours_contact",
    "mujoco-contact": "benchmarks.peers.mujoco_contact",
    "mjx-contact": "benchmarks.peers.mjx_contact",
    "brax-contact": "benchmarks.peers.brax_contact",
}
"""Who takes part, in the order of measuring."""
OURS = ("native", "first-call", "scaling", "layers", "xla", "native-contact")
ROUNDS = ("native", "casadi", "casadi-by-hand", "scaling")
"""Who is measured in several processes, by turns, because what else the machine does shows in close comparisons."""
ROUND_PARTS = ("W1", "W2", "W3", "W4-32", "threads")
CONTACT_PART = FIVE_LINKS.name
"""What is measured here of the contact benchmark's workloads."""
QUICK = ("native", "first-call", "casadi", "casadi-by-hand", "mujoco")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the double pendulum, in two minutes")
    parser.add_argument("--only", nargs="+", choices=list(PEERS), metavar="PEER", help=f"of: {', '.join(PEERS)}")
    parser.add_argument("--parts", nargs="+", metavar="PART", help="of each peer, such as W1 or 5a; all by default")
    parser.add_argument("--rounds", type=int, default=3, help="processes for the closest comparisons (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="keep what the JSON file has, if hybridsim is unchanged")
    parser.add_argument("--json", type=Path, default=Path("runs/gradients.json"), metavar="FILE", help="%(default)s")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="docs/images/gradients.svg, none with --quick")
    arguments = parser.parse_args()
    figure = arguments.figure or (None if arguments.quick else Path("docs/images/gradients.svg"))

    seconds = 0.3 if arguments.quick else 1.0
    parts = ["W1"] if arguments.quick else arguments.parts
    record = Record(arguments.json, OURS, arguments.resume)
    try:
        for peer in arguments.only or (QUICK if arguments.quick else PEERS):
            known = record.measured.get(peer, {})
            offered = [CONTACT_PART] if peer.endswith("-contact") else parts_of(PEERS[peer])
            wanted = [p for p in offered if p not in known and (not parts or p in parts)]
            if wanted:
                measure(record, peer, PEERS[peer], wanted, seconds)
        for _ in range(1, 1 if arguments.quick else arguments.rounds):
            for peer in ROUNDS:
                wanted = [p for p in record.measured.get(peer, {}) if p in ROUND_PARTS and (not parts or p in parts)]
                if wanted and peer in (arguments.only or PEERS):
                    measure(record, peer, PEERS[peer], wanted, seconds)
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what was measured is in {record.path}, go on with --resume") from None
    rows = record.rows()
    record.targets = targets.evaluated(rows)
    record.write()
    report.show(rows, record.failed, record.targets)
    if record.is_mixed():
        print(f"hybridsim was changed between measurements, do not compare them: {record.sources}")
    if figure:
        drawing.draw(rows, figure)
        print(f"figure: {figure}")
    print(f"all numbers: {record.path}")


if __name__ == "__main__":
    main()
