from hybridsim.io.words import counted, listed, nearest


def test_lists_stay_short():
    assert listed(["a"]) == "'a'"
    assert listed(["a", "b", "c", "d"]) == "'a', 'b', 'c', 'd'"
    assert listed([*"abcdefg"]) == "'a', 'b', 'c', 'd' and 3 more"


def test_counts():
    assert counted(1, "link") == "1 link"
    assert counted(0, "link") == "0 links"
    assert counted(2, "body", "bodies") == "2 bodies"


def test_the_nearest_name():
    assert nearest("sholder", ["elbow", "shoulder"]) == "did you mean 'shoulder'?"
    assert nearest("x", ["elbow", "shoulder"]) == ""
