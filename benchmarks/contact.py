"""Contact benchmark: mechanisms on the ground, hybridsim and its peers in the same run.

    python -m benchmarks.contact                everything: about half an hour
    python -m benchmarks.contact --quick        hybridsim and MuJoCo alone: some minutes
    python -m benchmarks.contact --resume       go on where an earlier run was stopped
    python -m benchmarks.contact --json FILE    where the numbers go

Every peer is a program of its own (`python -m benchmarks.peers.mjx_contact --help`) and is skipped where its package is
not installed: pip install 'hybridsim[peers]'. Results are in the JSON file as soon as they are measured. Times are CPU
times on one thread, best of several calls; see docs/benchmarks.md.
"""

import argparse
from pathlib import Path

from benchmarks import contact_figure, contact_targets, report
from benchmarks.contact_workloads import WORKLOADS
from benchmarks.running import Record, measure, parts_of

PEERS = {
    "native": "benchmarks.ours_contact",
    "mujoco": "benchmarks.peers.mujoco_contact",
    "mjx": "benchmarks.peers.mjx_contact",
    "brax": "benchmarks.peers.brax_contact",
}
"""Who takes part, in the order of measuring."""
OURS = ("native",)
QUICK = ("native", "mujoco")
"""Those that do not compile for minutes; measured again at the end, because what else the machine does shows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}")
    parser.add_argument("--only", nargs="+", choices=list(PEERS), metavar="PEER", help=f"of: {', '.join(PEERS)}")
    parser.add_argument(
        "--parts", nargs="+", choices=list(WORKLOADS), metavar="PART", help=f"of: {', '.join(WORKLOADS)}"
    )
    parser.add_argument("--rounds", type=int, default=2, help="processes for the closest comparisons (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="keep what the JSON file has, if hybridsim is unchanged")
    parser.add_argument(
        "--json", type=Path, nargs="?", default=Path("runs/contact.json"), const=Path("runs/contact.json"),
        metavar="FILE", help="%(default)s",
    )  # fmt: skip
    parser.add_argument("--figure", type=Path, metavar="FILE", help="docs/images/contact.svg, none with --quick")
    arguments = parser.parse_args()
    figure = arguments.figure or (None if arguments.quick else Path("docs/images/contact.svg"))

    seconds = 0.3 if arguments.quick else 1.0
    record = Record(arguments.json, OURS, arguments.resume)

    def measured(peers, again: bool) -> None:
        for peer in peers:
            known = {} if again else record.measured.get(peer, {})
            parts = [p for p in parts_of(PEERS[peer]) if p not in known and p in (arguments.parts or WORKLOADS)]
            if parts:
                measure(record, peer, PEERS[peer], parts, seconds)

    chosen = arguments.only or (QUICK if arguments.quick else tuple(PEERS))
    try:
        measured(chosen, again=False)
        for _ in range(1, 1 if arguments.quick else arguments.rounds):
            measured([peer for peer in QUICK if peer in chosen], again=True)
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what was measured is in {record.path}, go on with --resume") from None
    rows = record.rows()
    record.targets = contact_targets.evaluated(rows)
    record.write()
    report.show(rows, record.failed, record.targets)
    if record.is_mixed():
        print(f"hybridsim was changed between measurements, do not compare them: {record.sources}")
    if figure:
        contact_figure.draw(rows, figure)
        print(f"figure: {figure}")
    print(f"all numbers: {record.path}")


if __name__ == "__main__":
    main()
