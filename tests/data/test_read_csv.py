"""Text tables: dialects of real files, and problems reported by line and column."""

import numpy as np
import pytest

from hybridsim.data.channel import Channel
from hybridsim.data.read import read_table
from support.load_run import load_run


@pytest.mark.parametrize(
    "content",
    [
        "t,q\n0,1.5\n1,-2e3\n",
        "t;q\r\n0;1.5\r\n1;-2e3\r\n",
        "t\tq\n0\t1.5\n1\t-2e3\n",
        "t q\n0   1.5\n 1 -2e3\n",
        "t, q\n0, 1.5\n1, -2e3",
        "\ufefft,q\n0,1.5\n1,-2e3\n\n\n",
        "# made by hand\n\nt,q\n# first\n0,1.5\n\n1,-2e3\n",
        '"t","q"\n"0","1.5"\n"1","-2e3"\n',
        "# t,q\n0,1.5\n1,-2e3\n",
        "# t q\n0 1.5\n1 -2e3\n",
    ],
)
def test_all_dialects_give_the_same_values(write_text, content):
    table = read_table(write_text(content))
    assert {name: column.tolist() for name, column in table.columns.items()} == {"t": [0.0, 1.0], "q": [1.5, -2000.0]}


def test_columns_without_a_header_are_named_by_index(write_text):
    table = read_table(write_text("# 2 columns\n0,1.5\n1,2.5\n"))
    assert [*table.columns] == ["0", "1"]
    assert table.columns["1"].tolist() == [1.5, 2.5]


def test_the_unnamed_index_of_a_spreadsheet_is_a_column(write_text):
    assert [*read_table(write_text(",t,q\n0,0.1,1\n1,0.2,2\n")).columns] == ["0", "t", "q"]
    assert [*read_table(write_text(",0,1\n0,0.1,1\n1,0.2,2\n")).columns] == ["index", "0", "1"]


def test_rows_are_counted_as_an_editor_counts_lines(write_text):
    table = read_table(write_text("# a comment\nt,q\n\n0,1\n1,2\n# another\n\n2,3\n3,4\n"))
    assert [table.row_number(k) for k in range(4)] == [4, 5, 8, 9]
    assert table.row_label(2) == "line 8"


def test_lines_are_counted_beyond_the_first_block(write_text, problems):
    rows = [f"{k},{k}" for k in range(50_000)]
    rows[45_000] = "45000,oops"
    rows.insert(30_000, "# pause")
    found = problems(lambda: load_run(write_text("t,q\n" + "\n".join(rows)), [Channel("q", "q")], time="t"))
    assert [(p.code, p.line, p.element) for p in found] == [("data.text", 45_003, "q")]


@pytest.mark.parametrize("word", ["", "nan", "NaN", "NA", "null", "None", "inf", "-inf", '""'])
def test_cells_without_a_finite_value_are_reported(write_text, problems, word):
    file = write_text(f"t,q\n0,1\n1,{word}\n2,3\n3,{word}\n4,4\n")
    (problem,) = problems(lambda: load_run(file, [Channel("q", "q")], time="t"))
    assert (problem.code, problem.line, problem.element, problem.file) == ("data.nan", 3, "q", str(file))
    assert "line 3 (and 1 more such row)" in problem.message


@pytest.mark.parametrize(
    ("content", "cell", "advice"),
    [
        ("t;q\n0;1,5\n1;2,5\n", "1,5", "decimal point, 1.5 instead of 1,5"),
        ("t,q\n0,1.5 deg\n1,2\n", "1.5 deg", "unit in the channel"),
        ("t,q\n0,1;5\n1,2;5\n", "1;5", "same delimiter"),
        ("t,q\n0,ok\n1,2\n", "ok", "leave it empty"),
        ("t,q\n0,1_000\n1,2\n", "1_000", "correct the cell"),
    ],
)
def test_text_instead_of_a_number_is_quoted_with_advice(write_text, problems, content, cell, advice):
    (problem,) = problems(lambda: load_run(write_text(content), [Channel("q", "q")], time="t"))
    assert (problem.code, problem.line, problem.element) == ("data.text", 2, "q")
    assert repr(cell) in problem.message and advice in problem.fix


def test_text_in_an_unused_column_is_not_a_problem(write_text):
    file = write_text("t,mode,q\n0,idle,1\n1,run,2\n")
    assert load_run(file, [Channel("q", "q")], time="t").problems == ()
    assert read_table(file).unreadable["mode"].code == "data.text"


@pytest.mark.parametrize("delimiter", [",", " "])
def test_rows_with_a_text_column_are_checked_too(write_text, problems, delimiter):
    rows = [f"{k} run {k}.5" for k in range(100)]
    rows[60], rows[70], rows[80], rows[90] = "60 run 60.5 9", "70 run", '80 "run" 80.5', "90 run nan"
    content = "\n".join(["t mode q", *rows]).replace(" ", delimiter)
    found = problems(lambda: load_run(write_text(content), [Channel("q", "q")], time="t"))
    assert [(p.code, p.line) for p in found] == [("data.ragged", 62), ("data.nan", 92)]
    assert "1 more such row" in found[0].message


def test_rows_of_the_wrong_length_are_reported_with_all_other_problems(write_text, problems):
    file = write_text("t,q,v\n0,1,2\n1,2\n2,nan,3\n3,4,5\n4,5")
    found = problems(lambda: load_run(file, [Channel("q", "q")], time="t"))
    assert [(p.code, p.line) for p in found] == [("data.ragged", 3), ("data.nan", 4)]
    assert "line 3 has 2 of 3 cells (and 1 more such row)" in found[0].message
    (problem,) = problems(lambda: read_table(file))
    assert problem.code == "data.ragged"


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        ("t q\n0,1\n1,2\n", "separated by ','"),
        ("t,q\n0,1,\n1,2,\n", "remove the ','"),
        ("t,q\n0,1\n1,2,3\n", "in the middle of a row"),
    ],
)
def test_rows_of_the_wrong_length_are_explained(write_text, problems, content, advice):
    (problem,) = problems(lambda: read_table(write_text(content)))
    assert problem.code == "data.ragged" and advice in problem.fix


def test_duplicate_column_names_cannot_be_used(write_text, problems):
    file = write_text("t,q,q\n0,1,2\n1,2,3\n")
    (problem,) = problems(lambda: load_run(file, [Channel("q", "q")], time="t"))
    assert (problem.code, problem.element) == ("data.duplicate_column", "q")
    assert [*read_table(file).columns] == ["t"]


@pytest.mark.parametrize(
    ("content", "code", "word"),
    [
        (b"", "data.empty", "no data"),
        (b"# nothing\n\n", "data.empty", "no data"),
        (b"t,q\n", "data.empty", "no rows"),
        (b"t,winkel \xb0\n0,1\n", "data.format", "0xb0"),
        ("t,q\n0,1\n".encode("utf-16"), "data.format", "UTF-16"),
        (b"PK\x03\x04\x00\x00", "data.format", "not a text file"),
    ],
)
def test_files_that_are_not_tables(write_text, problems, content, code, word):
    (problem,) = problems(lambda: read_table(write_text(content)))
    assert problem.code == code and word in problem.message and problem.fix


def test_values_are_parsed_exactly(write_text):
    numbers = np.random.default_rng(3).normal(size=(100, 3)) * 10.0 ** np.arange(-3, 0)
    lines = "\n".join(",".join(map(repr, row)) for row in numbers.tolist())
    fast = read_table(write_text("a,b,c\n" + lines)).columns
    slow = read_table(write_text('a,b,c\n"1",2,3\n' + lines)).columns
    for k, name in enumerate("abc"):
        assert (fast[name] == numbers[:, k]).all()
        assert (slow[name][1:] == numbers[:, k]).all()
