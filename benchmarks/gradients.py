"""Gradient benchmark: hybridsim and its peers on the same workloads, in the same run.

    python -m benchmarks.gradients              everything: about half an hour
    python -m benchmarks.gradients --quick      only the double pendulum, without peers that compile for minutes
    python -m benchmarks.gradients --resume     resume an interrupted run

Every peer is a separate program (`python -m benchmarks.peers.mjx_peer --help`) and is skipped if its package is not
installed: pip install 'hybridsim[peers]'. Results are written to the JSON file as soon as they are measured. Times are
CPU times on one thread, best of several calls; see docs/benchmarks.md.
"""

from pathlib import Path

from benchmarks import figure as drawing
from benchmarks import targets
from benchmarks.comparison import finish, make_parser, report_interruption
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
"""All peers, in the order of measurement."""
OURS = ("native", "first-call", "scaling", "layers", "xla", "native-contact")
ROUNDS = ("native", "casadi", "casadi-by-hand", "scaling")
"""Peers measured alternately in several processes, as close comparisons are sensitive to other load on the machine."""
ROUND_PARTS = ("W1", "W2", "W3", "W4-32", "threads")
CONTACT_PART = FIVE_LINKS.name
"""The workload of the contact benchmark that is included here."""
QUICK = ("native", "first-call", "casadi", "casadi-by-hand", "mujoco")


def main() -> None:
    parser = make_parser(__doc__, "gradients", list(PEERS), quick="only the double pendulum, in two minutes", rounds=3)
    parser.add_argument(
        "--parts", nargs="+", metavar="PART", help="parts of each peer, such as W1 or 5a; by default all"
    )
    arguments = parser.parse_args()
    seconds = 0.3 if arguments.quick else 1.0
    parts = ["W1"] if arguments.quick else arguments.parts
    record = Record(arguments.json, OURS, arguments.resume)
    with report_interruption(record):
        for peer in arguments.only or (QUICK if arguments.quick else PEERS):
            done = record.measured.get(peer, {})
            available = [CONTACT_PART] if peer.endswith("-contact") else parts_of(PEERS[peer])
            missing = [p for p in available if p not in done and (not parts or p in parts)]
            if missing:
                measure(record, peer, PEERS[peer], missing, seconds)
        for _ in range(1, 1 if arguments.quick else arguments.rounds):
            for peer in ROUNDS:
                repeated = [p for p in record.measured.get(peer, {}) if p in ROUND_PARTS and (not parts or p in parts)]
                if repeated and peer in (arguments.only or PEERS):
                    measure(record, peer, PEERS[peer], repeated, seconds)
    figure = arguments.figure or (None if arguments.quick else Path("docs/images/gradients.svg"))
    finish(record, targets.evaluate, drawing.draw, figure)


if __name__ == "__main__":
    main()
