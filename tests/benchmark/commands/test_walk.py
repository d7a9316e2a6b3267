"""A new network to curves with intervals and a paired comparison: the page's own words, run."""

import re
from pathlib import Path
from typing import Any

import pytest

from layerboard.benchmark.commands.compare import Comparison
from layerboard.benchmark.commands.run import RunResult
from tests import fakes

DOCS = Path(__file__).parents[3] / "docs" / "how-to"


@pytest.mark.slow
def test_the_walk_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    walk, memory, charts, search, head = re.findall(
        r"<!-- walk -->\n```python\n(.*?)```", page, flags=re.DOTALL
    )
    fakes.write_fake_imagenet(tmp_path)
    (tmp_path / "imagenet").rename(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("layerboard.leaderboards.writers.build.write_board", lambda *_: [])
    names: dict[str, Any] = {"__name__": "walk"}
    exec(walk, names)  # the page's own words

    (promised,) = re.findall(r"^# (my-net: .*)$", walk, flags=re.MULTILINE)
    assert promised in capsys.readouterr().out.splitlines()
    found, curves, versus = (names[name] for name in ("found", "curves", "versus"))
    assert isinstance(found, RunResult)
    assert found.failures == ()
    assert "my-net" in set(found.frame["backbone"])
    own = curves[(curves["backbone"] == "my-net") & (curves["pooling"] == "cls")]
    assert own["layer"].tolist() == [1, 2, 3, 4]
    assert own["value"].between(own["ci_low"], own["ci_high"]).all()
    assert isinstance(versus, Comparison)
    assert versus.frame["p"].notna().all()
    assert versus.title == "my-net and mini-dino, paired"
    assert "mini-dino" in versus._repr_html_()

    monkeypatch.setenv("LAYERBOARD_CACHE", str(tmp_path / "cache"))
    exec(memory, names)
    assert {*names["turned"].frame["dataset"]} != {*found.frame["dataset"]}
    assert names["turned"].frame["dataset"].str.startswith("memory-").all()
    exec(charts, names)
    assert (tmp_path / "best.svg").is_file()
    exec(search, names)
    assert names["search"].best_params_["layerencoder__layer"] in (6, 9, 12)
    exec(head, names)
    assert names["model"](names["pixels"]).shape == (4, 10)
