"""What is kept of frames of scores: found once, gone with the frame, and never of a frame of the caller."""

import gc

from leaderboards.choices import kept
from leaderboards.choices.best import best_layers
from leaderboards.choices.kept import is_kept, once
from leaderboards.choices.selection import columns_of, pooled, score_rows
from tests.leaderboards.builder import frame, layers


def test_it_is_looked_for_once_in_scores_and_each_time_in_other_frames():
    records = frame(layers([1.0, 2.0]))
    for one, times in ((records, 2), (score_rows(records), 1)):
        calls = []
        for _ in range(2):
            assert once(one, "a key", lambda calls=calls: calls.append(0) or 7) == 7
        assert len(calls) == times


def test_scores_of_scores_are_they_themselves_and_of_a_column_too():
    records = frame(layers([1.0, 2.0]), layers([5.0], task="davis", metric="J&F"))
    scores = score_rows(records)
    assert score_rows(scores) is scores
    for column in columns_of(scores):
        rows = column.rows(scores)
        assert is_kept(rows)
        assert column.rows(scores) is rows
        assert pooled(rows, column) is pooled(scores, column)
        assert set(rows["task"]) == {column.task}


def test_a_frame_of_the_caller_may_change():
    records = frame(layers([1.0, 2.0]))
    assert best_layers(records)["value"].tolist() == [2.0]
    records["value"] = [4.0, 3.0]
    assert not is_kept(records)
    assert best_layers(records)["value"].tolist() == [4.0]


def test_what_was_found_goes_with_its_frame():
    gc.collect()
    before = len(kept._FOUND)
    scores = score_rows(frame(layers([1.0, 2.0]), layers([5.0], task="davis", metric="J&F")))
    best_layers(scores)
    for column in columns_of(scores):
        pooled(scores, column)
    assert len(kept._FOUND) > before
    del scores, column
    gc.collect()
    assert len(kept._FOUND) == before
