"""A run by the paper's protocol, beside one by the standard protocol."""

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs.prepare import plan_of
from layerboard.benchmark.plan.backbones import find_backbones
from layerboard.benchmark.plan.suites import PAPER_SUITE, RAGHU_SUITE
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec.origin import TRANSFORMERS
from tests import fakes
from tests.benchmark.conftest import Whole
from tests.benchmark.runs import run
from tests.leaderboards.shown import render_page


def test_both_protocols_stand_side_by_side(again: Path, data: Path, whole: Whole) -> None:
    records = run(again, ["mini-fs"], data=data, protocol="paper", layers="1")
    paper = records[records["protocol"] == "paper"]
    standard = records[records["protocol"] == "standard"]
    assert len(standard) == len(whole.records)
    assert set(paper["task"]) == set(standard["task"])
    assert set(paper[paper["task"] == "cka"]["pooling"]) == {"cls", "patch", "all"}
    keypoints = paper[(paper["task"] == "spair") & (paper["metric"] == "PCK@0.1 per image")]
    assert keypoints["n"].iloc[0] % 20 == 0
    assert paper["ci_low"][paper["task"] != "cka"].notna().any()
    davis = paper[(paper["task"] == "davis") & (paper["metric"] == "J&F")]["value"]
    assert (davis - davis.round(1)).abs().max() < 1e-9
    page = render_page(records[records["task"] == "knn"], "standard")
    assert "knn top-1 (paper)" in page
    assert "knn top-1 (standard)" in page


def test_the_paper_suite_has_its_20_vision_transformers_and_needs_two_files(
    data: Path, tmp_path: Path
) -> None:
    specs = find(PAPER_SUITE.backbones)
    assert len(specs) == 20
    assert sum(spec.depth for spec in specs) == 308
    without = [spec for spec in specs if not spec.repository]
    assert [spec.name for spec in without] == ["dino-s8-300ep", "moco-s16"]
    records = run(tmp_path, ["moco-s16"], "knn", data=data, protocol="paper", fails=True)
    (failure,) = records.attrs["failures"]
    assert "--weights moco-s16=FILE" in failure
    assert "vit-s-300ep.pth.tar" in failure


def requested(tmp_path: Path, weights: dict[str, Path]) -> Request:
    return Request(output=tmp_path, cache=tmp_path, backbones=("moco-s16",), floor=False, weights=weights)


def test_backbones_of_a_suite_that_need_a_file_are_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    asked, report = replace(requested(tmp_path, {}), backbones=()), Silent(say=lines.append)
    monkeypatch.setattr("layerboard.benchmark.plan.backbones.describe_backbone", lambda spec, cache: "")
    specs = find_backbones(asked, PAPER_SUITE, report)
    assert len(specs) == 18
    moco = "https://dl.fbaipublicfiles.com/moco-v3/vit-s-300ep/vit-s-300ep.pth.tar"
    said = f"left out: moco-s16 of the suite paper: fetch {moco} and add --weights moco-s16=FILE"
    assert [line for line in lines if "left out" in line][1:] == [said]
    (tmp_path / "moco.pth").touch()
    given = replace(asked, weights={"moco-s16": tmp_path / "moco.pth"})
    assert "moco-s16" in [spec.name for spec in find_backbones(given, PAPER_SUITE, Silent())]
    alone = replace(PAPER_SUITE, backbones=("moco-s16", "timm:resnet18"))
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"moco-s16=FILE; left out: timm:resnet18 .*layerboard\[timm\]"):
        find_backbones(asked, alone, Silent())
    assert any(spec.is_convnet for spec in find([name for name in RAGHU_SUITE.backbones if ":" not in name]))


def test_a_network_of_a_suite_that_cannot_be_examined_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SimpleNamespace(is_model=bool, create_model=lambda name, **options: torch.nn.Conv2d(3, 4, 8, 8))
    whole.get_pretrained_cfg = lambda name, allow_unregistered: None
    whole.__spec__ = ModuleSpec("timm", None)  # of which transformers asks
    monkeypatch.setitem(sys.modules, "timm", whole)
    lines: list[str] = []
    suite = replace(PAPER_SUITE, backbones=("timm:odd", "mini-fs", "timm:strange"), floors=())
    asked = Request(output=tmp_path, cache=tmp_path, floor=False)
    (spec,) = find_backbones(asked, suite, Silent(say=lines.append))
    assert spec.name == "mini-fs"
    start = "left out: timm:odd of the suite paper: timm:odd: Conv2d has no list of modules of one class"
    assert [line.startswith(start) for line in lines if line.startswith("left out")] == [True, False]


def test_networks_of_a_suite_whose_weights_cannot_be_had_are_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def create_model(name: str, **options: object) -> torch.nn.Module:
        built.append(name)
        raise RuntimeError("is not built in this test")

    of_hub = SimpleNamespace(hf_hub_id="timm/some.tag", hf_hub_filename=None)
    fake = SimpleNamespace(is_model=bool, create_model=create_model, __spec__=ModuleSpec("timm", None))
    fake.get_pretrained_cfg = lambda name, allow_unregistered: None if name == "other" else of_hub
    monkeypatch.setitem(sys.modules, "timm", fake)
    monkeypatch.setattr("layerboard.zoo.own.timm_models.hub_answers", lambda: False)
    lines: list[str] = []
    suite = replace(PAPER_SUITE, backbones=("timm:one", "mini-fs", "timm:two"), floors=())
    asked = Request(output=tmp_path, cache=tmp_path, floor=False)
    find_backbones(asked, suite, Silent(say=lines.append))
    assert [line for line in lines if "left out" in line] == [
        "left out: timm:one, timm:two of the suite paper: the weights are in no cache of the Hugging Face "
        "Hub, which cannot be reached; connect once, or add --weights NAME=FILE"
    ]
    assert built == []
    with pytest.raises(InputError, match="is not built in this test"):
        find_backbones(asked, replace(suite, backbones=("timm:other",)), Silent())
    assert set(built) == {"other"}
    monkeypatch.setattr("layerboard.zoo.own.timm_models.hub_answers", lambda: True)
    find_backbones(asked, suite, Silent())
    assert {"one", "two"} < set(built)


def test_weights_replace_the_repository_of_a_backbone(tmp_path: Path) -> None:
    file = tmp_path / "vit-s.pth.tar"
    torch.save({}, file)
    (spec,) = find_backbones(requested(tmp_path, {"moco-s16": file}), PAPER_SUITE, Silent())
    assert (spec.name, spec.repository) == ("moco-s16", str(file))
    (spec,) = find_backbones(requested(tmp_path, {"moco-s16": tmp_path}), PAPER_SUITE, Silent())
    assert spec.repository == str(tmp_path)


def test_weights_replace_generated_ones_too(tmp_path: Path) -> None:
    request = replace(requested(tmp_path, {"mini-fs": tmp_path}), backbones=("mini-fs",))
    (spec,) = find_backbones(request, PAPER_SUITE, Silent())
    assert (spec.repository, spec.origin, spec.trained) == (str(tmp_path), TRANSFORMERS, True)
    request = replace(requested(tmp_path, {"random": tmp_path}), backbones=("random",))
    with pytest.raises(InputError, match="'random', whose features come from no file"):
        find_backbones(request, PAPER_SUITE, Silent())


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"moco-s16": Path("absent.pth")}, "expected the weights of moco-s16 at absent.pth"),
        ({"dino-s16": Path()}, "--weights names 'dino-s16', which is not run; it runs moco-s16"),
    ],
)
def test_weights_that_cannot_be_used(tmp_path: Path, weights: dict[str, Path], words: str) -> None:
    with pytest.raises(InputError, match=words):
        find_backbones(requested(tmp_path, weights), PAPER_SUITE, Silent())


@pytest.mark.parametrize("protocols", ["hummingbird,capi", "capi,hummingbird"])
def test_a_protocol_whose_data_is_not_there_stops_no_other_one(tmp_path: Path, protocols: str) -> None:
    fakes.write_fake_voc(tmp_path)
    for masks in tmp_path.rglob("SegmentationClassAug"):
        masks.rename(masks.with_name("elsewhere"))
    request = Request("mini-random", data=tmp_path, protocol=protocols, cache=tmp_path / "cache")
    plan = plan_of(request, Silent(), writes=False).plan
    assert {task.protocol for task in plan.tasks.every} == {"capi"}
    (broken,) = plan.tasks.broken
    assert broken.task == "protocol hummingbird"
    assert "is not there: segment: " in broken.reason
    with pytest.raises(InputError, match="is not there: segment: "):
        plan_of(replace(request, protocol="hummingbird"), Silent(), writes=False)
