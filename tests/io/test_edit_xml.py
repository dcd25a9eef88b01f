import pytest

from hybridsim.io.edit_xml import Change, Changes, Edits, number_text, numbers_text
from hybridsim.io.xml import parse

SOURCE = b"""<?xml version="1.0"?>\r
<robot name='x'>\r
\t<!-- keep me -->\r
\t<a k = "1>2" b='q' /><unknown tag="&amp;"/>\r
\t<b>\r
\t\t<c one="1"  two="2"/>\r
\t</b>\r
\t<d></d><e>\r
\t</e>\r
</robot>"""


def apply_edits(change) -> bytes:
    root = parse(SOURCE, "f")
    edits = Edits(SOURCE)
    change(edits, {e.tag: e for e in root.walk()})
    result = edits.apply()
    parse(result, "f")
    return result


def test_no_edit_changes_nothing():
    assert apply_edits(lambda edits, e: None) == SOURCE


def test_a_value_is_replaced_within_its_quotes():
    result = apply_edits(lambda edits, e: edits.set_attribute(e["a"], "k", "3"))
    assert result == SOURCE.replace(b'"1>2"', b'"3"')
    result = apply_edits(lambda edits, e: edits.set_attribute(e["a"], "b", "it's <&>"))
    assert result == SOURCE.replace(b"'q'", b"'it&apos;s &lt;&amp;>'")


def test_a_new_attribute_comes_last():
    result = apply_edits(lambda edits, e: edits.set_attribute(e["a"], "new", "1"))
    assert result == SOURCE.replace(b"b='q' />", b"b='q' new=\"1\" />")


def test_the_last_value_wins():
    def change(edits, e):
        edits.set_attribute(e["c"], "one", "3")
        edits.set_attribute(e["c"], "one", "4")

    assert apply_edits(change) == SOURCE.replace(b'one="1"', b'one="4"')


def test_removing_an_attribute_also_removes_the_preceding_whitespace():
    result = apply_edits(lambda edits, e: edits.remove_attribute(e["c"], "two"))
    assert result == SOURCE.replace(b'  two="2"', b"")


def test_removing_a_missing_attribute_changes_nothing():
    assert apply_edits(lambda edits, e: edits.remove_attribute(e["c"], "three")) == SOURCE


def test_children_are_indented_like_their_siblings():
    result = apply_edits(lambda edits, e: edits.append_child(e["b"], "<new/>"))
    assert result == SOURCE.replace(b'two="2"/>', b'two="2"/>\r\n\t\t<new/>')


def test_an_empty_element_is_opened():
    def change(edits, e):
        edits.set_attribute(e["c"], "one", "5")
        edits.append_child(e["c"], "<new>\n\t<x/>\n</new>")
        edits.append_child(e["c"], "<more/>")

    inner = b'<c one="5"  two="2">\r\n\t\t\t<new>\r\n\t\t\t\t<x/>\r\n\t\t\t</new>\r\n\t\t\t<more/>\r\n\t\t</c>'
    assert apply_edits(change) == SOURCE.replace(b'<c one="1"  two="2"/>', inner)


def test_children_of_elements_without_any():
    result = apply_edits(lambda edits, e: edits.append_child(e["d"], "<new/>"))
    assert result == SOURCE.replace(b"<d></d>", b"<d>\r\n\t\t<new/>\r\n\t</d>")
    result = apply_edits(lambda edits, e: edits.append_child(e["e"], "<new/>"))
    assert b"<e>\r\n  <new/>\r\n\t</e>" in result


def test_edits_of_a_parent_and_its_last_child_do_not_collide():
    def change(edits, e):
        edits.append_child(e["b"], "<outer/>")
        edits.append_child(e["c"], "<inner/>")
        edits.set_attribute(e["b"], "k", "1")

    result = apply_edits(change)
    assert b"</c>\r\n\t\t<outer/>\r\n\t</b>" in result and b'<b k="1">' in result


def test_non_ascii_text_is_valid_in_every_encoding():
    source = '<?xml version="1.0" encoding="iso-8859-1"?><a n="ä"/>'.encode("latin-1")
    element = parse(source, "f")
    edits = Edits(source)
    edits.set_attribute(element, "m", "ψ")
    assert parse(edits.apply(), "f").attributes == {"n": "ä", "m": "ψ"}


@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e-300, -2.0, 5e22, 0.0])
def test_numbers_read_back_exactly(number):
    assert float(number_text(number)) == number
    assert [float(word) for word in numbers_text([number, 1.0]).split()] == [number, 1.0]


def test_a_change_is_printed_on_one_line():
    assert str(Change("link 'a'", 3, "mass [kg]", 1.0, 1.5)) == "link 'a': mass [kg] 1 → 1.5"
    change = Change("joint 'j'", 3, "axis", None, (0.0, 1.0), "not expressible in URDF")
    assert str(change) == "joint 'j': axis – → (0, 1) (not expressible in URDF)"


def test_changes_are_a_table():
    changes = Changes(
        [
            Change("link 'trunk'", 12, "mass [kg]", 1.0, 1.5),
            Change("joint 'j'", 0, "axis", None, (0.0, 1.0, 0.0), "not expressible in URDF"),
        ]
    )
    assert str(changes).splitlines() == [
        "element       line  parameter  before  after      note",
        "link 'trunk'  12    mass [kg]  1       1.5",
        "joint 'j'           axis       –       (0, 1, 0)  not expressible in URDF",
    ]
    assert str(Changes()) == "no changes"
    assert len(changes) == 2 and changes[0].line == 12
    with pytest.raises(TypeError):
        changes[0] = changes[1]  # type: ignore[index]
