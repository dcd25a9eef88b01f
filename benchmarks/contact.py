"""Contact benchmark: hybridsim and its peers on mechanisms in contact with the ground, in the same run.

    python -m benchmarks.contact                everything: about half an hour
    python -m benchmarks.contact --quick        only hybridsim and MuJoCo: some minutes
    python -m benchmarks.contact --resume       resume an interrupted run
    python -m benchmarks.contact --json FILE    output file of the results

Every peer is a separate program (`python -m benchmarks.peers.mjx_contact --help`) and is skipped if its package is not
installed: pip install 'hybridsim[peers]'. Results are written to the JSON file as soon as they are measured. Times are
CPU times on one thread, best of several calls; see docs/benchmarks.md.
"""

from pathlib import Path

from benchmarks import contact_figure, contact_targets
from benchmarks.comparison import finish, make_parser, report_interruption
from benchmarks.contact_workloads import WORKLOADS
from benchmarks.running import Record, measure, parts_of

PEERS = {
    "native": "benchmarks.ours_contact",
    "mujoco": "benchmarks.peers.mujoco_contact",
    "mjx": "benchmarks.peers.mjx_contact",
    "brax": "benchmarks.peers.brax_contact",
}
"""All peers, in the order of measurement."""
OURS = ("native",)
QUICK = ("native", "mujoco")
"""Peers that do not compile for minutes; measured again at the end, as times are sensitive to other load."""


def main() -> None:
    parser = make_parser(__doc__, "contact", list(PEERS), quick=f"only {' and '.join(QUICK)}", rounds=2)
    parser.add_argument(
        "--parts", nargs="+", choices=list(WORKLOADS), metavar="PART", help=f"of: {', '.join(WORKLOADS)}"
    )
    arguments = parser.parse_args()
    seconds = 0.3 if arguments.quick else 1.0
    record = Record(arguments.json, OURS, arguments.resume)

    def measure_peers(peers, repeat: bool) -> None:
        for peer in peers:
            done = {} if repeat else record.measured.get(peer, {})
            parts = [p for p in parts_of(PEERS[peer]) if p not in done and p in (arguments.parts or WORKLOADS)]
            if parts:
                measure(record, peer, PEERS[peer], parts, seconds)

    selected = arguments.only or (QUICK if arguments.quick else tuple(PEERS))
    with report_interruption(record):
        measure_peers(selected, repeat=False)
        for _ in range(1, 1 if arguments.quick else arguments.rounds):
            measure_peers([peer for peer in QUICK if peer in selected], repeat=True)
    figure = arguments.figure or (None if arguments.quick else Path("docs/images/contact.svg"))
    finish(record, contact_targets.evaluate, contact_figure.draw, figure)


if __name__ == "__main__":
    main()
