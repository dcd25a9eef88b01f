from hybridsim.data.words import advice, and_more, counted, listed, nearest


def test_counts():
    assert (counted(1, "row"), counted(2, "row"), counted(0, "body", "bodies")) == ("1 row", "2 rows", "0 bodies")
    assert (and_more(1, "row"), and_more(2, "row")) == ("", " (and 1 more row)")
    assert and_more(4, "row") == " (and 3 more rows)"


def test_lists_stay_short():
    assert listed("ab") == "'a', 'b'"
    assert listed(map(str, range(20))).endswith("'11' and 8 more")


def test_names_that_were_probably_meant():
    assert nearest("ELBOW", ["elbow", "knee"]) == "did you mean 'elbow'?"
    assert nearest("x", ["elbow", "knee"]) == ""
    assert advice("x", ["elbow", "knee"]) == "there are 'elbow', 'knee'"
    assert advice("x", []) == "there are none"
