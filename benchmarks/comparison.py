"""What benchmarks of hybridsim beside its peers have in common: their options, and how they end."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import report
from benchmarks.measure import Row
from benchmarks.running import Record


def options(doc: str, name: str, peers: Sequence[str], quick: str, rounds: int) -> argparse.ArgumentParser:
    """The command line, but for the parts that can be chosen.

    Args:
        doc: description of the benchmark.
        name: of its files.
        peers: who takes part.
        quick: what is measured with `--quick`.
        rounds: how often the closest comparisons are measured.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", nargs="+", choices=list(peers), metavar="PEER", help=f"of: {', '.join(peers)}")
    parser.add_argument(
        "--rounds", type=int, default=rounds, help="processes for the closest comparisons (%(default)s)"
    )
    parser.add_argument("--resume", action="store_true", help="keep what the JSON file has, if hybridsim is unchanged")
    path = Path(f"runs/{name}.json")
    parser.add_argument("--json", type=Path, nargs="?", default=path, const=path, metavar="FILE", help="%(default)s")
    parser.add_argument("--figure", type=Path, metavar="FILE", help=f"docs/images/{name}.svg, none with --quick")
    return parser


@contextmanager
def resumable(record: Record) -> Iterator[None]:
    """Tell whoever interrupts the measurements how to go on with them."""
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what was measured is in {record.path}, go on with --resume") from None


def finish(
    record: Record,
    evaluated: Callable[[list[Row]], list[dict]],
    draw: Callable[[list[Row], Path], None],
    figure: Path | None,
) -> None:
    """Judge, show and draw what was measured.

    Args:
        record: all of it.
        evaluated: targets by the rows.
        draw: the figure of the rows, into a file.
        figure: the file, if it is wanted.
    """
    rows = record.rows()
    record.targets = evaluated(rows)
    record.write()
    report.show(rows, record.failed, record.targets)
    if record.is_mixed():
        print(f"hybridsim was changed between measurements, do not compare them: {record.sources}")
    if figure:
        draw(rows, figure)
        print(f"figure: {figure}")
    print(f"all numbers: {record.path}")
