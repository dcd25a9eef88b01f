import os

import pytest

from hybridsim.core.errors import ModelError
from hybridsim.io import xml
from hybridsim.io.xml import parse, read


def problem_of(source: bytes):
    with pytest.raises(ModelError) as caught:
        parse(source, "robot.urdf")
    (problem,) = caught.value.problems
    assert problem.file == "robot.urdf"
    return problem


class TestLocations:
    SOURCE = b"""\n<?xml version="1.0"?>\r
<!-- <link/> in a comment -->\r
<robot name='x'>
  <a k = "1>2" b='"q"' /><b><c/>text</b >
  <d></d>
</robot>\n\0"""

    def test_offsets_cover_exactly_the_elements(self):
        root = parse(self.SOURCE, "f")
        texts = {e.tag: (self.SOURCE[e.start : e.start_tag_end], self.SOURCE[e.start : e.end]) for e in root.walk()}
        assert texts["a"] == (b"""<a k = "1>2" b='"q"' />""",) * 2
        assert texts["b"] == (b"<b>", b"<b><c/>text</b >")
        assert texts["c"] == (b"<c/>", b"<c/>")
        assert texts["d"] == (b"<d>", b"<d></d>")
        assert texts["robot"][1].startswith(b"<robot") and texts["robot"][1].endswith(b"</robot>")

    def test_lines_count_from_the_start_of_the_file(self):
        root = parse(self.SOURCE, "f")
        assert {e.tag: e.line for e in root.walk()} == {"robot": 4, "a": 5, "b": 5, "c": 5, "d": 6}

    def test_a_byte_order_mark_shifts_nothing(self):
        source = b"\xef\xbb\xbf<robot><a/></robot>"
        element = parse(source, "f").children[0]
        assert source[element.start : element.end] == b"<a/>"

    def test_attributes_and_children(self):
        root = parse(b'<r><a n=" 1 &amp; 2 "/><b/><a n="3"/></r>', "f")
        assert [e.get("n") for e in root.children_with_tag("a")] == ["1 & 2", "3"]
        assert root.child("b") is root.children[1] and root.child("z") is None
        assert root.children[0].parent is root
        assert root.get("absent", "default") == "default"

    def test_titles_name_the_nearest_named_ancestor(self):
        root = parse(b'<robot name="r"><link name="a"><inertial><mass/></inertial></link><x/></robot>', "f")
        titles = {e.tag: e.title for e in root.walk()}
        assert titles["link"] == "<link> 'a'"
        assert titles["mass"] == "<mass> of link 'a'"
        assert titles["x"] == "<x>"


class TestRejection:
    def test_document_type(self):
        problem = problem_of(b'<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY x "1">]>\n<r a="&x;"/>')
        assert (problem.code, problem.line) == ("xml.doctype", 2)

    def test_depth(self):
        assert problem_of(b"<a>" * 20_000 + b"</a>" * 20_000).code == "xml.size"
        deepest = b"<a>" * xml.MAX_DEPTH + b"</a>" * xml.MAX_DEPTH
        assert parse(deepest, "f").tag == "a"

    def test_size(self, monkeypatch):
        monkeypatch.setattr(xml, "MAX_BYTES", 100)
        assert problem_of(b"<a>" + b" " * 200 + b"</a>").code == "xml.size"
        monkeypatch.setattr(xml, "MAX_BYTES", 1000)
        monkeypatch.setattr(xml, "MAX_ELEMENTS", 10)
        assert problem_of(b"<a>" + b"<b/>" * 10 + b"</a>").code == "xml.size"

    @pytest.mark.parametrize(
        ("source", "code", "line", "fix"),
        [
            (b"", "xml.empty", 0, "saved"),
            (b" \n\t\n", "xml.empty", 0, "saved"),
            (b"\x7fELF\x02\x01\0\0\0<a/>", "xml.encoding", 1, "UTF-8"),
            ("<a/>".encode("utf-16"), "xml.encoding", 1, "UTF-8"),
            (b"<a>\n\xff\xfe</a>", "xml.encoding", 2, "UTF-8"),
            (b'<?xml version="1.0" encoding="klingon"?><a/>', "xml.encoding", 1, "UTF-8"),
            (b'<?xml version="1.0" encoding="shift_jis"?><a/>', "xml.encoding", 1, "UTF-8"),
            (b"hello", "xml.syntax", 1, "starts with <robot"),
            (b"<a>\n<b>\n</a>", "xml.syntax", 3, "<b> of line 2"),
            (b"<a>\n<b>\n", "xml.syntax", 2, "restore the complete file, or close <b>"),
            (b"<a>\n<b x='1", "xml.syntax", 2, "restore the complete file, or close <a>"),
            (b"<a x='&y;'/>", "xml.syntax", 1, "&amp;"),
            (b"<a x='1' x='2'/>", "xml.syntax", 1, "remove one"),
            (b"<a/><b/>", "xml.syntax", 1, "correct"),
            (b"<!-- c -->\n<?xml version='1.0'?><a/>", "xml.syntax", 2, "to the beginning of the file"),
        ],
    )
    def test_bad_text(self, source, code, line, fix):
        problem = problem_of(source)
        assert (problem.code, problem.line) == (code, line)
        assert fix in problem.fix
        assert ("may be truncated" in problem.message) == ("restore" in fix)

    def test_an_old_single_byte_encoding_is_read(self):
        root = parse('<?xml version="1.0" encoding="iso-8859-1"?><a n="Gelände"/>'.encode("latin-1"), "f")
        assert root.get("n") == "Gelände"


class TestFiles:
    def code_of(self, path):
        with pytest.raises(ModelError) as caught:
            read(path)
        (problem,) = caught.value.problems
        assert problem.file == str(path) and problem.fix
        return problem.code

    def test_reads_bytes_and_root(self, tmp_path):
        path = tmp_path / "r.urdf"
        path.write_bytes(b"<robot/>\r\n")
        source, root = read(path)
        assert source == b"<robot/>\r\n" and root.file == str(path)

    def test_directory(self, tmp_path):
        assert self.code_of(tmp_path) == "file.directory"

    def test_missing(self, tmp_path):
        (tmp_path / "arm.urdf").write_text("<robot/>")
        assert self.code_of(tmp_path / "arn.urdf") == "file.missing"
        assert self.code_of(tmp_path / "nowhere" / "arm.urdf") == "file.missing"
        with pytest.raises(ModelError, match=r"the folder contains arm\.urdf"):
            read(tmp_path / "arn.urdf")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_no_permission(self, tmp_path):
        path = tmp_path / "r.urdf"
        path.write_text("<robot/>")
        path.chmod(0)
        assert self.code_of(path) == "file.unreadable"

    def test_impossible_name(self):
        assert self.code_of("a" * 5000) == "file.unreadable"

    def test_empty_name(self):
        assert self.code_of("") == "file.missing"


def test_stored_text_is_bounded():
    root = parse(b"<a>" + b" x<b>50</b>" * 100 + b"</a>", "f")
    assert root.children[0].text == "50"
    assert root.text == " x" * (xml.MAX_TEXT // 2)
