from hybridsim.core.messages import MAX_NAMES, and_more, did_you_mean, name_hint, name_list, pluralize


def test_counts():
    assert (pluralize(1, "row"), pluralize(2, "row"), pluralize(0, "body", "bodies")) == ("1 row", "2 rows", "0 bodies")
    assert (and_more(1, "row"), and_more(2, "row")) == ("", " (and 1 more row)")
    assert and_more(4, "row") == " (and 3 more rows)"


def test_lists_stay_short():
    assert name_list("ab") == "'a', 'b'"
    assert name_list(map(str, range(MAX_NAMES))).endswith(repr(str(MAX_NAMES - 1)))
    assert name_list(map(str, range(20))).endswith(f"'{MAX_NAMES - 1}' and {20 - MAX_NAMES} more")


def test_suggestions_for_misspelled_names():
    assert did_you_mean("sholder", ["elbow", "shoulder"]) == "did you mean 'shoulder'?"
    assert did_you_mean("ELBOW", {"knee", "elbow"}) == "did you mean 'elbow'?"
    assert did_you_mean("x", ["elbow", "knee"]) == ""


def test_only_the_most_similar_names_are_suggested():
    assert did_you_mean("joint7", ["joint1", "joint0"]) == "did you mean 'joint0' or 'joint1'?"
    assert did_you_mean("damping", ["damping_ratio", "Damping"]) == "did you mean 'Damping'?"
    assert did_you_mean("a1", ["a2", "a3", "a4", "a5"]) == "did you mean 'a2' or 'a3' or 'a4'?"


def test_long_and_numerous_names_take_no_time():
    assert did_you_mean("ab" * 100_000, ("ba" * 100_000 for _ in range(100))) == ""
    names = [f"{k:06d}" + "ab" * 40 for k in range(100_000)]
    assert did_you_mean("ab" * 100_000, names).count("or") == 2


def test_hint_lists_the_valid_names():
    assert name_hint("elbo", ["elbow", "knee"]) == "did you mean 'elbow'?"
    assert name_hint("x", ["elbow", "knee", "knee"]) == "valid names are 'elbow', 'knee'"
    assert name_hint("x", []) == "there are none"
