"""Results: what they show of themselves, and the numbers behind it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import layerboard
from layerboard.benchmark.commands import result
from layerboard.benchmark.commands.cka import Similarity
from layerboard.benchmark.commands.result import Result, page_files
from layerboard.benchmark.engines.log import logged
from layerboard.benchmark.engines.progress import Silent
from layerboard.zoo.errors import InputError
from tests.benchmark.conftest import Whole, copy_results
from tests.benchmark.runs import Cli


def test_a_table_shows_itself_as_text_and_as_html() -> None:
    frame = pd.DataFrame({"name": ["<b>", "x"], "value": [0.123456, np.nan]})
    result = Result(title="a & b", frame=frame, notes=("one < two",))
    lines = repr(result).splitlines()
    assert lines[0] == "a & b"
    assert lines[2].split() == ["name", "value"]
    assert lines[4].split() == ["<b>", "0.1235"]
    assert lines[-1] == "one < two"
    page = result._repr_html_()
    assert "<b>a &amp; b</b>" in page
    assert "<td>&lt;b&gt;</td>" in page
    assert "<p>one &lt; two</p>" in page
    many = Result(title="many", frame=pd.DataFrame({"n": range(50)}))
    assert "10 more rows: see frame." in repr(many)
    assert many._repr_html_().count("<tr>") == 40


def test_texts_are_shown_as_they_are() -> None:
    texts = pd.DataFrame({"score": ["31.0"]})
    assert "31.0" in repr(Result(title="t", frame=pd.DataFrame(), table=texts))


def test_a_table_fits_the_screen_and_breaks_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "mini-dino; mini-resnet; layers 5 to 7"
    texts = pd.DataFrame({"task": ["knn top-1"], "score": ["31.0 ± 1.0"], "not shown to be worse": [names]})
    result = Result(
        title="t", frame=pd.DataFrame(), table=texts, notes=("Not shown to be worse: a note. " * 3,)
    )
    assert max(map(len, repr(result).splitlines())) > 60
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    shown = repr(result)
    assert max(map(len, shown.splitlines())) <= 40
    assert {*names.split(), "top-1", "31.0"} <= {*shown.split()}
    assert "31.0 ± 1.0" in shown
    wide = pd.DataFrame({f"column {place}": ["mini-resnet", "1.0 ± 0.5"] for place in range(9)})
    lines = repr(Result(title="t", frame=pd.DataFrame(), table=wide)).splitlines()
    assert max(map(len, lines)) <= 40
    assert [line.count("mini-resnet") for line in lines if "mini" in line] == [2] * 8 or len(lines) > 20
    assert sum(line.count("1.0 ± 0.5") for line in lines) >= 9


def test_a_run_shows_answers_and_keeps_records(whole: Whole) -> None:
    found = layerboard.best(output=whole.place / "out", tasks=["knn", "davis"])
    assert set(found.frame["task"]) == {"knn", "davis"}
    assert (found.frame["suite"] == "standard").all()
    assert "best backbone" in repr(found)
    with pytest.raises(InputError, match="there is no task 'knm'; did you mean 'knn'"):
        layerboard.best(output=whole.place / "out", tasks="knm")


def test_a_run_of_analyses_has_no_answer(data: Path, tmp_path: Path) -> None:
    options = {
        "data": data,
        "floor": False,
        "workers": 1,
        "output": tmp_path / "out",
        "cache": tmp_path / "cache",
    }
    found = layerboard.run("mini-fs", "inspect", progress=False, **options)  # type: ignore[arg-type]
    assert found.failures == ()
    assert len(found.frame) > 0
    assert len(found.best) == 0
    assert repr(found) == "no scores; what analyses found is on pages of their own, in the folder tables"
    assert "no scores" in found._repr_html_()
    assert "<table" not in found._repr_html_()


def test_results_have_the_charts_of_the_report(whole: Whole, tmp_path: Path) -> None:
    out = copy_results(whole, tmp_path / "out", "knn", "cluster-image", "cka")
    found = layerboard.best(output=out)
    assert found.plot().name == found.charts[0] == "layers"
    assert {"knn-best", "knn-layers", "mini-resnet-tasks"} <= {*found.charts}
    (own,) = (
        name for name in found.charts if name.startswith("cka-") and "mean" in name and "pairs" not in name
    )
    assert found.plot(own).spec["background"] == "#ffffff"
    with pytest.raises(InputError, match="there is no chart 'knn-bets'; did you mean 'knn-best'"):
        found.plot("knn-bets")
    scores = whole.records.query("task == 'knn' and primary and tap == 'block' and transform == ''")
    alone = layerboard.best(output=out, tasks="knn").plot()
    assert alone.name == "knn-layers"
    assert {row["value"] for row in alone.spec["data"]["values"]} <= {*scores["value"]}


def test_each_result_has_its_usual_chart(whole: Whole, tmp_path: Path) -> None:
    out = copy_results(whole, tmp_path / "out", "knn", "cka")
    versus = layerboard.compare("mini-fs", "mini-resnet", output=out, tasks="knn")
    assert versus.plot("knn-layers").name == "knn-layers"
    advice = layerboard.recommend("knn", output=out, backbones="mini-fs")
    assert advice.plot().name.startswith("knn-cost-")
    assert {row["backbone"] for row in advice.plot().spec["data"]["values"]} == {"mini-fs"}
    matrix = layerboard.cka("mini-fs", "mini-resnet", output=out)
    titles = (each.get("title") for each in _parts(matrix.plot().spec))
    shown = {line for title in titles if isinstance(title, list) for line in title}
    assert {"mini-fs", "mini-resnet"} <= shown


def _parts(spec: object) -> Iterator[dict[str, object]]:
    """Every mapping of a specification."""
    if isinstance(spec, dict):
        yield spec
    for each in spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ():
        yield from _parts(each)


def test_a_result_without_a_chart_says_so() -> None:
    numbers = layerboard.cka(np.eye(6)[:, :3], np.eye(6)[:, 2:])
    assert numbers.charts == ()
    for name in ("", "knn-best"):
        with pytest.raises(InputError, match="chart"):
            numbers.plot(name)


def test_a_folder_says_that_its_run_goes_on(of_knn: Path, tmp_path: Path) -> None:
    with logged(Silent(), of_knn) as log:
        log.note("all backbones: 3 of 8 images")
        found = layerboard.best(output=of_knn, tasks="knn")
        assert found.notes[0].endswith("all backbones: 3 of 8 images.")
        assert len(found.frame)
        with pytest.raises(InputError, match=r"goes on; .* So far: task cost was not run here"):
            layerboard.best(output=of_knn, tasks="cost")
    with logged(Silent(), tmp_path / "new") as log:
        log.note("a run of 3 backbones")
        with pytest.raises(InputError, match=r"goes on; .* 3 backbones\. No task has its scores yet"):
            layerboard.show(output=tmp_path / "new")
    assert "goes on" not in repr(layerboard.best(output=of_knn, tasks="knn"))


def test_a_page_stands_in_a_frame_until_it_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a<b>.html"
    path.write_text("<script>alert('&amp;')</script>", encoding="utf-8")
    shown = page_files([path])._repr_html_()
    assert 'srcdoc="&lt;script&gt;alert(&#x27;&amp;amp;&#x27;)&lt;/script&gt;"' in shown
    assert "a&lt;b&gt;.html" in shown
    assert "a<b>" not in shown
    monkeypatch.setattr(result, "MOST_SHOWN", 8)
    assert "<iframe" not in page_files([path])._repr_html_()
    assert "open it in a browser" in page_files([path])._repr_html_()
    path.unlink()
    assert "<table" in page_files([path])._repr_html_()


def test_cka_of_arrays_is_the_scorer_s(tmp_path: Path, cli: Cli) -> None:
    draw = np.random.default_rng(0)
    first, second = draw.standard_normal((40, 6)), draw.standard_normal((40, 9))
    np.save(tmp_path / "a.npy", first)
    np.save(tmp_path / "b.npy", second)
    given = ("--features", tmp_path / "a.npy", tmp_path / "b.npy", "--json")
    scored = json.loads(cli("score", "cka", *given).out)["scores"]["a"]["b"]
    assert float(layerboard.cka(first, second)) == pytest.approx(scored, abs=1e-9)
    assert float(layerboard.cka(torch.from_numpy(first), second)) == pytest.approx(scored, abs=1e-9)
    files = layerboard.cka(tmp_path / "a.npy", str(tmp_path / "b.npy"))
    assert float(files) == pytest.approx(scored, abs=1e-9)
    assert files.frame["samples"].tolist() == [40]
    biased = layerboard.cka(first, first, estimator="biased", batch_size=10)
    assert float(biased) == pytest.approx(1)


def test_cka_of_backbones_is_what_a_run_measured(whole: Whole) -> None:
    out = whole.place / "out"
    found = layerboard.cka("mini-fs", "mini-resnet", output=out)
    assert isinstance(found, Similarity)
    assert list(found.matrix.index) == ["1", "final"]
    assert list(found.matrix.columns) == ["1"]
    turned = layerboard.cka("mini-resnet", "mini-fs", output=out)
    np.testing.assert_array_equal(turned.matrix.to_numpy(), found.matrix.to_numpy().T)
    records = whole.records.query("task == 'cka' and backbone == 'mini-fs' and other == 'mini-resnet'")
    records = records[(records["pooling"] == "mean") & (records["tap"] == "final")]
    assert found.title.endswith(", mean")  # a ResNet has no class token
    assert found.matrix.loc["final", "1"] == records["value"].item()
    with pytest.raises(TypeError, match="CKA of 2 pairs of layers, not a number"):
        float(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda out: layerboard.cka("mini-fs", np.eye(4), output=out), "takes two arrays .or .npy files."),
        (lambda out: layerboard.cka("mini-fs", "mini-dino", output=out), "^backbone mini-dino was not run"),
        (lambda out: layerboard.cka("mini-fs", "mini-fs", output=out, pooling="max"), "pooling 'max'"),
        (lambda out: layerboard.cka("mini-fs", "mini-fs", output=out, dataset="x"), "none called x"),
        (lambda out: layerboard.cka(np.ones((5, 2)), np.eye(5)), "all rows are the same"),
        (lambda out: layerboard.cka(np.eye(5), np.eye(6)), "found 5 rows in the first array"),
        (lambda out: layerboard.cka([["a"], [{}]], np.eye(2)), "should hold numbers; found Python objects"),
    ],
)
def test_cka_refuses_in_a_sentence(whole: Whole, call: Callable[[Path], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(whole.place / "out")
