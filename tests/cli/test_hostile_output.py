"""Control characters of names are never printed raw, and output that cannot be written is a clear error."""

import subprocess
import sys

import pytest

from hybridsim.cli.main import run
from hybridsim.cli.output import print_json, print_parts, print_problems, print_table, say
from hybridsim.core.console import as_text, text_table
from hybridsim.core.errors import Problem

HOSTILE = ["\x1b[31mred", "\x9b2J", "\x07", "a\u202egpj", "b\x00c", "\udcff", "\r\n\x08"]
CONTROL = {chr(k) for k in (*range(32), *range(127, 160), 0x200E, 0x200F, *range(0x202A, 0x202F))} - {"\n", "\t"}


@pytest.mark.parametrize("text", HOSTILE)
def test_control_characters_are_visible(text, capsys):
    say(text)
    say(text, style="red", stderr=True)
    print_table([text], [[text]])
    print_parts([text, text_table(["title"], [[text]])])
    print_problems([Problem(f"no joint is named {text!r}", text, file=text)])
    print_json({"name": text})
    captured = capsys.readouterr()
    shown = captured.out + captured.err + as_text([text])
    assert not CONTROL & {*shown} and shown.encode()


def test_ordinary_text_is_unchanged(capsys):
    say("Gelenk für Ω: 3 µm/s² — 関節")
    assert capsys.readouterr().out == "Gelenk für Ω: 3 µm/s² — 関節\n"


def test_names_of_files_that_are_no_text(tmp_path, capsys):
    assert run(["check", str(tmp_path / "robot\udcff\x1b[2J.urdf")]) == 1
    assert "robot\\udcff\\x1b[2J.urdf" in capsys.readouterr().out


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_full_and_closed_output(option):
    command = " ".join([sys.executable, "-m", "hybridsim", "taps", "pendulum", *option])
    full = subprocess.run(f"{command} > /dev/full", shell=True, capture_output=True, text=True)
    assert (full.returncode, full.stderr) == (1, "hybridsim: cannot write the output: No space left on device\n")
    closed = subprocess.run(f"{command} >&-", shell=True, capture_output=True, text=True)
    assert (closed.returncode, closed.stderr) == (0, "")
