"""A network of this process in a run, among names."""

from pathlib import Path

import pytest
import torch

import layerboard
from layerboard.benchmark.engines.base import LocalEngine
from layerboard.benchmark.engines.choose import suited_engine
from layerboard.benchmark.engines.processes import ProcessEngine
from layerboard.benchmark.forms.request import Request
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from tests.benchmark.runs import Tally, run
from tests.zoo.own.module.networks import SIZE, Vit


def test_it_runs_among_names_and_is_not_computed_again(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = Vit(0)
    own = layerboard.from_module(net, name="own-vit", family="Own", supervision="nothing", image_size=SIZE)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("own-vit: 3 blocks of net.blocks, 0 prefix tokens + 4x4 grid of patch 8")
    with Tally().watching() as tally:
        records = run(tmp_path, [own, "mini-fs"], "knn", "davis", data=data, layers="1-3")  # type: ignore[list-item]
    assert records.attrs["failures"] == []
    assert tally.loads == ["mini-fs", "own-vit"]
    rows = records[records["backbone"] == "own-vit"]
    assert set(rows["task"]) == {"knn", "davis"}
    assert set(rows["family"]) == {"Own"}
    assert set(rows["revision"]) == {own.revision}
    assert rows[rows["primary"]]["value"].notna().all()
    again = layerboard.from_module(Vit(0), name="own-vit", family="Own", image_size=SIZE, verbose=False)
    assert capsys.readouterr().out == ""
    with Tally().watching() as tally:
        run(tmp_path, [again], "knn", "davis", data=data, layers="1-3")  # type: ignore[list-item]
    assert tally.loads == []
    versus = layerboard.compare(own, "mini-fs", output=tmp_path / "out", tasks="knn")
    assert versus.title == "own-vit and mini-fs, paired"


def test_it_stays_in_its_process() -> None:
    own = layerboard.from_module(Vit(), image_size=SIZE, verbose=False)
    device = torch.device("cpu")
    names = find(["mini-fs", "mini-clip"])
    assert isinstance(suited_engine(names, Request(workers=2), [device]), ProcessEngine)
    assert isinstance(suited_engine([*names, own.spec], Request(workers=2), [device]), LocalEngine)


def test_a_request_holds_names_only() -> None:
    own = layerboard.from_module(Vit(), image_size=SIZE, verbose=False)
    assert Request(own).backbones == (own.reference,)
    assert Request(["mini-fs", own]).backbones == ("mini-fs", own.reference)
    with pytest.raises(InputError, match="--backbones takes a word; found 3"):
        Request([own, 3])  # type: ignore[list-item]
    with pytest.raises(InputError, match="image_size= takes a whole number of at least 1; found 'x'"):
        layerboard.from_module(Vit(), image_size="x")  # type: ignore[arg-type]
