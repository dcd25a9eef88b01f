from hybridsim.core.messages import MAX_NAMES, name_hint, name_list, pluralize, remainder_suffix, spelling_suggestion


def test_counts():
    assert (pluralize(1, "row"), pluralize(2, "row"), pluralize(0, "body", "bodies")) == ("1 row", "2 rows", "0 bodies")
    assert (remainder_suffix(1, "row"), remainder_suffix(2, "row")) == ("", " (and 1 more row)")
    assert remainder_suffix(4, "row") == " (and 3 more rows)"


def test_lists_stay_short():
    assert name_list("ab") == "'a', 'b'"
    assert name_list(map(str, range(MAX_NAMES))).endswith(repr(str(MAX_NAMES - 1)))
    assert name_list(map(str, range(20))).endswith(f"'{MAX_NAMES - 1}' and {20 - MAX_NAMES} more")


def test_suggestions_for_misspelled_names():
    assert spelling_suggestion("sholder", ["elbow", "shoulder"]) == "did you mean 'shoulder'?"
    assert spelling_suggestion("ELBOW", {"knee", "elbow"}) == "did you mean 'elbow'?"
    assert spelling_suggestion("x", ["elbow", "knee"]) == ""


def test_only_the_most_similar_names_are_suggested():
    assert spelling_suggestion("joint7", ["joint1", "joint0"]) == "did you mean 'joint0' or 'joint1'?"
    assert spelling_suggestion("damping", ["damping_ratio", "Damping"]) == "did you mean 'Damping'?"
    assert spelling_suggestion("a1", ["a2", "a3", "a4", "a5"]) == "did you mean 'a2' or 'a3' or 'a4'?"


def test_long_and_numerous_names_take_no_time():
    assert spelling_suggestion("ab" * 100_000, ("ba" * 100_000 for _ in range(100))) == ""
    names = [f"{k:06d}" + "ab" * 40 for k in range(100_000)]
    assert spelling_suggestion("ab" * 100_000, names).count("or") == 2


def test_hint_lists_the_valid_names():
    assert name_hint("elbo", ["elbow", "knee"]) == "did you mean 'elbow'?"
    assert name_hint("x", ["elbow", "knee", "knee"]) == "valid names are 'elbow', 'knee'"
    assert name_hint("x", []) == "there are none"
