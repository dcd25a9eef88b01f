"""Common parts of the benchmarks against peers: command-line options and the final report."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import report
from benchmarks.measure import Row
from benchmarks.running import Record


def make_parser(doc: str, name: str, peers: Sequence[str], quick: str, rounds: int) -> argparse.ArgumentParser:
    """Argument parser with all common options.

    Args:
        doc: description of the benchmark.
        name: stem of the output files.
        peers: names of all peers.
        quick: help text of `--quick`.
        rounds: default number of measurements of the closest comparisons.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", nargs="+", choices=list(peers), metavar="PEER", help=f"of: {', '.join(peers)}")
    parser.add_argument("--rounds", type=int, default=rounds, help="processes per close comparison (%(default)s)")
    parser.add_argument(
        "--resume", action="store_true", help="keep the results in the JSON file, if hybridsim is unchanged"
    )
    path = Path(f"runs/{name}.json")
    parser.add_argument("--json", type=Path, nargs="?", default=path, const=path, metavar="FILE", help="%(default)s")
    parser.add_argument(
        "--figure", type=Path, metavar="FILE", help=f"by default docs/images/{name}.svg, or none with --quick"
    )
    return parser


@contextmanager
def report_interruption(record: Record) -> Iterator[None]:
    """Report how to resume interrupted measurements."""
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; results so far are in {record.path}, continue with --resume") from None


def finish(
    record: Record,
    evaluate: Callable[[list[Row]], list[dict]],
    draw: Callable[[list[Row], Path], None],
    figure: Path | None,
) -> None:
    """Check the targets, print the results and draw the figure.

    Args:
        record: all measurements.
        evaluate: checks the targets against the rows.
        draw: draws the rows into a file.
        figure: file of the figure; None for no figure.
    """
    rows = record.rows()
    record.targets = evaluate(rows)
    record.write()
    report.show(rows, record.failed, record.targets)
    if record.is_mixed():
        print(f"hybridsim was changed between measurements, so they are not comparable: {record.sources}")
    if figure:
        draw(rows, figure)
        print(f"figure: {figure}")
    print(f"all results: {record.path}")
