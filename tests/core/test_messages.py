from hybridsim.core.messages import MOST_NAMES, advice, and_more, counted, listed, nearest


def test_counts():
    assert (counted(1, "row"), counted(2, "row"), counted(0, "body", "bodies")) == ("1 row", "2 rows", "0 bodies")
    assert (and_more(1, "row"), and_more(2, "row")) == ("", " (and 1 more row)")
    assert and_more(4, "row") == " (and 3 more rows)"


def test_lists_stay_short():
    assert listed("ab") == "'a', 'b'"
    assert listed(map(str, range(MOST_NAMES))).endswith(repr(str(MOST_NAMES - 1)))
    assert listed(map(str, range(20))).endswith(f"'{MOST_NAMES - 1}' and {20 - MOST_NAMES} more")


def test_names_that_were_probably_meant():
    assert nearest("sholder", ["elbow", "shoulder"]) == "did you mean 'shoulder'?"
    assert nearest("ELBOW", {"knee", "elbow"}) == "did you mean 'elbow'?"
    assert nearest("x", ["elbow", "knee"]) == ""


def test_only_names_that_are_about_as_similar_are_asked_about():
    assert nearest("joint7", ["joint1", "joint0"]) == "did you mean 'joint0' or 'joint1'?"
    assert nearest("damping", ["damping_ratio", "Damping"]) == "did you mean 'Damping'?"
    assert nearest("a1", ["a2", "a3", "a4", "a5"]) == "did you mean 'a2' or 'a3' or 'a4'?"


def test_hostile_names_cost_no_time():
    assert nearest("ab" * 100_000, ("ba" * 100_000 for _ in range(100))) == ""
    names = [f"{k:06d}" + "ab" * 40 for k in range(100_000)]
    assert nearest("ab" * 100_000, names).count("or") == 2


def test_advice_names_what_there_is():
    assert advice("elbo", ["elbow", "knee"]) == "did you mean 'elbow'?"
    assert advice("x", ["elbow", "knee", "knee"]) == "there are 'elbow', 'knee'"
    assert advice("x", []) == "there are none"
