"""Contact benchmark: mechanisms on the ground, hybridsim and its peers in the same run.

    python -m benchmarks.contact                everything: about half an hour
    python -m benchmarks.contact --quick        hybridsim and MuJoCo alone: some minutes
    python -m benchmarks.contact --resume       go on where an earlier run was stopped
    python -m benchmarks.contact --json FILE    where the numbers go

Every peer is a program of its own (`python -m benchmarks.peers.mjx_contact --help`) and is skipped where its package is
not installed: pip install 'hybridsim[peers]'. Results are in the JSON file as soon as they are measured. Times are CPU
times on one thread, best of several calls; see docs/benchmarks.md.
"""

from pathlib import Path

from benchmarks import contact_figure, contact_targets
from benchmarks.comparison import finish, options, resumable
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
    parser = options(__doc__, "contact", list(PEERS), quick=f"only {' and '.join(QUICK)}", rounds=2)
    parser.add_argument(
        "--parts", nargs="+", choices=list(WORKLOADS), metavar="PART", help=f"of: {', '.join(WORKLOADS)}"
    )
    arguments = parser.parse_args()
    seconds = 0.3 if arguments.quick else 1.0
    record = Record(arguments.json, OURS, arguments.resume)

    def measured(peers, again: bool) -> None:
        for peer in peers:
            known = {} if again else record.measured.get(peer, {})
            parts = [p for p in parts_of(PEERS[peer]) if p not in known and p in (arguments.parts or WORKLOADS)]
            if parts:
                measure(record, peer, PEERS[peer], parts, seconds)

    chosen = arguments.only or (QUICK if arguments.quick else tuple(PEERS))
    with resumable(record):
        measured(chosen, again=False)
        for _ in range(1, 1 if arguments.quick else arguments.rounds):
            measured([peer for peer in QUICK if peer in chosen], again=True)
    figure = arguments.figure or (None if arguments.quick else Path("docs/images/contact.svg"))
    finish(record, contact_targets.evaluated, contact_figure.draw, figure)


if __name__ == "__main__":
    main()
