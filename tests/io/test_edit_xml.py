import os
import stat
import threading
from pathlib import Path

import pytest

from hybridsim.core.errors import ModelError
from hybridsim.core.files import write_atomically
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


def edited(change) -> bytes:
    root = parse(SOURCE, "f")
    edits = Edits(SOURCE)
    change(edits, {e.tag: e for e in root.walk()})
    result = edits.apply()
    parse(result, "f")
    return result


def test_no_edit_changes_nothing():
    assert edited(lambda edits, e: None) == SOURCE


def test_a_value_is_replaced_within_its_quotes():
    result = edited(lambda edits, e: edits.set_attribute(e["a"], "k", "3"))
    assert result == SOURCE.replace(b'"1>2"', b'"3"')
    result = edited(lambda edits, e: edits.set_attribute(e["a"], "b", "it's <&>"))
    assert result == SOURCE.replace(b"'q'", b"'it&apos;s &lt;&amp;>'")


def test_a_new_attribute_comes_last():
    result = edited(lambda edits, e: edits.set_attribute(e["a"], "new", "1"))
    assert result == SOURCE.replace(b"b='q' />", b"b='q' new=\"1\" />")


def test_the_last_value_wins():
    def change(edits, e):
        edits.set_attribute(e["c"], "one", "3")
        edits.set_attribute(e["c"], "one", "4")

    assert edited(change) == SOURCE.replace(b'one="1"', b'one="4"')


def test_removal_takes_the_blank_before_it():
    result = edited(lambda edits, e: edits.remove_attribute(e["c"], "two"))
    assert result == SOURCE.replace(b'  two="2"', b"")


def test_removing_a_missing_attribute_changes_nothing():
    assert edited(lambda edits, e: edits.remove_attribute(e["c"], "three")) == SOURCE


def test_children_are_indented_like_their_siblings():
    result = edited(lambda edits, e: edits.insert_child(e["b"], "<new/>"))
    assert result == SOURCE.replace(b'two="2"/>', b'two="2"/>\r\n\t\t<new/>')


def test_an_empty_element_is_opened():
    def change(edits, e):
        edits.set_attribute(e["c"], "one", "5")
        edits.insert_child(e["c"], "<new>\n\t<x/>\n</new>")
        edits.insert_child(e["c"], "<more/>")

    inner = b'<c one="5"  two="2">\r\n\t\t\t<new>\r\n\t\t\t\t<x/>\r\n\t\t\t</new>\r\n\t\t\t<more/>\r\n\t\t</c>'
    assert edited(change) == SOURCE.replace(b'<c one="1"  two="2"/>', inner)


def test_children_of_elements_without_any():
    result = edited(lambda edits, e: edits.insert_child(e["d"], "<new/>"))
    assert result == SOURCE.replace(b"<d></d>", b"<d>\r\n\t\t<new/>\r\n\t</d>")
    result = edited(lambda edits, e: edits.insert_child(e["e"], "<new/>"))
    assert b"<e>\r\n  <new/>\r\n\t</e>" in result


def test_edits_of_a_parent_and_its_last_child_do_not_collide():
    def change(edits, e):
        edits.insert_child(e["b"], "<outer/>")
        edits.insert_child(e["c"], "<inner/>")
        edits.set_attribute(e["b"], "k", "1")

    result = edited(change)
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


class TestWriting:
    def test_replaces_the_content_and_leaves_nothing_behind(self, tmp_path):
        path = tmp_path / "a.urdf"
        write_atomically(path, b"one")
        path.chmod(0o640)
        write_atomically(path, b"two")
        assert path.read_bytes() == b"two"
        assert path.stat().st_mode & 0o777 == 0o640
        assert [p.name for p in tmp_path.iterdir()] == ["a.urdf"]

    def test_a_new_file_has_the_permissions_of_new_files(self, tmp_path):
        old = os.umask(0o027)
        try:
            write_atomically(tmp_path / "a.urdf", b"one")
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / "a.urdf").stat().st_mode) == 0o640

    def test_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "folder").mkdir()
        target, link = tmp_path / "folder" / "a.urdf", tmp_path / "link.urdf"
        target.write_bytes(b"old")
        link.symlink_to("folder/a.urdf")
        write_atomically(link, b"new")
        assert link.is_symlink() and target.read_bytes() == b"new"
        target.unlink()
        write_atomically(link, b"newer")
        assert link.is_symlink() and target.read_bytes() == b"newer"

    def test_a_pipe_is_written_into(self, tmp_path):
        pipe, received = tmp_path / "pipe", []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
        reader.start()
        write_atomically(pipe, b"data")
        reader.join(timeout=10.0)
        assert received == [b"data"] and stat.S_ISFIFO(pipe.stat().st_mode)

    def test_a_device_stays_a_device(self):
        write_atomically(os.devnull, b"data")
        assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)

    def test_a_folder_is_rejected(self, tmp_path):
        with pytest.raises(ModelError, match="Is a directory"):
            write_atomically(tmp_path, b"data")

    def test_failure_keeps_the_old_content(self, tmp_path, monkeypatch):
        path = tmp_path / "a.urdf"
        path.write_bytes(b"old")

        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(ModelError, match="No space left"):
            write_atomically(path, b"new")
        assert path.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["a.urdf"]

    def test_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(ModelError, match="cannot write"):
            write_atomically(tmp_path / "no" / "a.urdf", b"")


def test_a_change_reads_as_a_sentence():
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
