"""MCAP files: fields of JSON messages as columns, topics with separate time stamps."""

import numpy as np
import pytest

from hybridsim.data.channel import Channel
from hybridsim.data.read import read_table
from support.load_run import load_run

START = 1_700_000_000_000_000_000
"""Nanoseconds since 1970, as robots log them."""


def joints(k):
    return {"name": ["hip", "knee"], "position": [0.1 * k, 0.2 * k], "header": {"seq": k}, "ok": True}


@pytest.fixture
def two_topics(write_messages):
    content = [("/imu", START, {"gyro": {"z": 5.0}})]
    content += [("/joints", START + 1_000_001 * k, joints(k)) for k in range(1, 5)]
    content += [("/imu", START + 2_500_000 * k, {"gyro": {"z": 5.0 + k}}) for k in range(1, 3)]
    return write_messages(content)


def test_fields_become_columns(two_topics):
    table = read_table(two_topics, group="/joints")
    assert table.columns["position[1]"].tolist() == [0.2, 0.4, 0.2 * 3, 0.8]
    assert table.columns["header.seq"].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert table.columns["ok"].tolist() == [1.0] * 4
    assert table.unreadable["name[0]"].code == "data.text"


def test_log_times_count_from_the_first_message_of_any_topic(two_topics):
    t = read_table(two_topics, group="/joints").columns["log_time"]
    assert t == pytest.approx([0.001000001, 0.002000002, 0.003000003, 0.004000004], rel=0, abs=1e-15)


def test_without_a_topic_all_are_read(two_topics):
    columns = read_table(two_topics).columns
    assert columns["/imu/gyro.z"].tolist() == [5.0, 6.0, 7.0]
    assert len(columns["/joints/log_time"]) == 4


def test_a_recording_of_two_topics_keeps_their_times(two_topics):
    channels = [Channel("position[1]", "knee", unit="rad", group="/joints"), Channel("gyro.z", "turning", group="/imu")]
    recording = load_run(two_topics, channels, time="log_time")
    assert len(recording.series["knee"]) == 4 and len(recording.series["turning"]) == 3
    assert recording.series["turning"].t.tolist() == [0.0, 0.0025, 0.005]
    assert recording.start == recording.series["knee"].t[0]
    assert recording.end == recording.series["knee"].t[-1]
    assert len(recording.sources) == 1


def test_fields_that_some_messages_lack_are_missing_there(write_messages):
    table = read_table(
        write_messages([("/a", 0, {"x": 1, "y": 2}), ("/a", 1, {"x": None}), ("/a", 2, {"y": "off", "x": 3})])
    )
    assert np.isnan(table.columns["x"][1]) and table.columns["x"][2] == 3.0
    assert table.unreadable["y"].line == 3


def test_unknown_topics_are_named(two_topics, problems):
    (problem,) = problems(lambda: read_table(two_topics, group="/joint"))
    assert problem.code == "data.group" and "'/joints'" in problem.fix


def test_messages_in_other_encodings_are_refused_with_advice(write_messages, problems):
    file = write_messages([("/cdr/joints", 0, b"\x00\x01"), ("/cdr/joints", 1, b"\x00\x01")])
    for group in ("", "/cdr/joints"):
        (problem,) = problems(lambda group=group: read_table(file, group=group))
        assert problem.code == "data.encoding" and "cdr" in problem.message and "CSV" in problem.fix


def test_topics_in_other_encodings_do_not_affect_json_topics(write_messages, problems):
    content = [
        (topic, k, value) for k in range(3) for topic, value in [("/cdr/x", b"1"), ("/a", {"x": k}), ("/b", {"x": 1})]
    ]
    file = write_messages(content)
    assert read_table(file).columns["/a/x"].tolist() == [0.0, 1.0, 2.0]
    (problem,) = problems(lambda: load_run(file, [Channel("/cdr/x/position", "q")], time="/a/log_time"))
    assert problem.code == "data.encoding"


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[" * 100_000])
def test_messages_that_are_not_json(write_messages, problems, data):
    (problem,) = problems(lambda: read_table(write_messages([("/a", 0, {"x": 1}), ("/a", 1, data)])))
    assert problem.code == "data.format"


def test_a_file_without_messages(write_messages, problems):
    (problem,) = problems(lambda: read_table(write_messages([])))
    assert problem.code == "data.empty"
