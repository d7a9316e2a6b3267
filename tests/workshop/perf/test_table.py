"""The table of budgets, of small shapes: that all rows are there and say something; never how fast."""

import json

import numpy as np
import pytest
from scipy import ndimage

from layerboard.tasks.propagation.j_and_f import score_video
from workshop.perf import grids, networks
from workshop.perf.__main__ import main, save
from workshop.perf.measuring import Budget, Machine, Row, as_data, as_table

CHEAP = {"pass": 3, "gram": 1, "cka": 1, "davis": 1, "jf": 1, "spair": 1, "knn": 2, "report": 2, "decode": 4}
"""Topics that a test can afford, and their rows."""


@pytest.mark.slow  # times, which are taken again and again
def test_cheap_topics_give_all_rows(capsys, monkeypatch):
    tiny = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48, "num_hidden_layers": 2}
    monkeypatch.setitem(networks.SIZES, "ViT-S/16", tiny)
    assert main(["--quick", "--json", "--only", *CHEAP]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["machine"]["dtype"] == "float32"
    rows = found["rows"]
    assert {name: sum(row["topic"] == name for row in rows) for name in CHEAP} == CHEAP
    assert all(row["value"] > 0 for row in rows)
    assert all(value > 0 for row in rows for value in row["figures"].values())
    by_name = {row["what"]: row for row in rows}
    assert by_name["forwards an image, for all layers"]["value"] == 1
    (cka,) = (row for row in rows if row["topic"] == "cka")
    assert float(cka["note"].rsplit(" ", 1)[1]) < 1e-4  # the loop computes the same
    (jf,) = (row for row in rows if row["topic"] == "jf")
    assert jf["note"].startswith("exactly equal")


def test_the_official_rule_of_masks_is_ours():
    truths = grids.ellipse_labels((40, 60), 4, 2, shift=0)
    found = grids.ellipse_labels((40, 60), 4, 2, shift=3)
    found[1][:] = 0  # nothing is found of what is there
    expected = score_video(found, truths)
    official = grids.official_scores(found, truths, 2, ndimage.binary_dilation)
    assert np.array_equal(official, np.stack([expected.j, expected.f]))
    assert 0 < official[:, :, 1].min() < official[:, :, 1].max() < 1


@pytest.mark.parametrize(("length", "radius"), [(5, 1), (7, 3), (3, 12)])
def test_windows_are_counted_as_they_are_cut(length, radius):
    near = np.abs(np.subtract.outer(np.arange(length), np.arange(length))) <= radius
    assert grids.covered(length, radius) == near.sum()


def test_budgets():
    assert Row("a", 1.05, budget=Budget(1.05)).met
    assert not Row("a", 1.06, budget=Budget(1.05)).met
    assert Row("a", 7.1, budget=Budget(7, at_least=True)).met
    rows = [("a", Row("slow", 2.0, budget=Budget(1.5))), ("b", Row("gone", None, note="no card"))]
    table = as_table(as_data(rows))
    assert "NO" in table
    assert "at most 1.5 x" in table
    assert "no card" in table


def test_results_are_named_by_the_device_and_topics_replaced(tmp_path):
    machine = Machine("Some CPU @ 2 GHz, 2 threads", 2, "2.0", "3.11", "1", "float32", 0.1)
    first = [("pass", Row("a", 1.0, budget=Budget(2))), ("jf", Row("b", 3.0))]
    save(machine, as_data(first), tmp_path)
    page = save(machine, as_data([("jf", Row("b", 4.0, figures={"ours": 1.5}))]), tmp_path)
    assert page.name == "some-cpu-2-ghz-2-threads.md"
    rows = json.loads(page.with_suffix(".json").read_text())["rows"]
    assert [(row["topic"], row["value"], row["met"]) for row in rows] == [
        ("pass", 1.0, True),
        ("jf", 4.0, None),
    ]
    assert "ours 1.5" in page.read_text()
