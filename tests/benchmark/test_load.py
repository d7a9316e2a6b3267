"""`layerboard.load`: backbones by name, cut after a layer, as a run shows them images."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import layerboard
from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.vectors import write_vectors
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import COST, config_of, find_tasks
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.cut import CutBackbone
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import FitLongSide, Letterbox, Tiles
from tests.zoo.load.test_infer import save

CPU = {"device": "cpu"}


@pytest.mark.parametrize(
    ("name", "layer", "kept", "pooling"),
    [
        ("mini-fs", 1, "cls", "cls"),
        ("mini-fs", "final", "mean", "mean"),
        ("mini-resnet", 1, "mean,patchwise", "patchwise"),
    ],
)
def test_vectors_are_those_of_a_run(  # type: ignore[no-untyped-def]
    data: Path, tmp_path: Path, name: str, layer, kept: str, pooling
) -> None:
    """Images, the way they are shown, and the numbers: all as `features` writes them."""
    request = Request(
        name, "knn", data=data, layers=str(layer), output=tmp_path, cache=tmp_path / "cache",
        workers=1, poolings=kept,
    )  # fmt: skip
    (path,) = [
        file.path for file in write_vectors(request, Silent()).files if f".{pooling}." in file.path.name
    ]
    with np.load(path) as arrays:
        keys, expected = [str(key) for key in arrays["test_keys"]], arrays["test"]
    files = {one.name: one for one in (data / "imagenet").rglob("*.JPEG")}
    images = [Image.open(files[Path(key).name]) for key in keys]
    encode = layerboard.load(name, layer=layer, pooling=pooling, **CPU)
    np.testing.assert_allclose(encode(images).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_views_are_those_of_the_task_at_the_input_size() -> None:
    views = {
        task: layerboard.load("mini-resnet", layer=1, pooling="grid", task=task, **CPU).view
        for task in ("spair", "cluster-object", "retrieval")
    }
    assert isinstance(views["spair"], Letterbox)
    assert isinstance(views["cluster-object"], Tiles)
    assert isinstance(views["retrieval"], FitLongSide)
    larger = layerboard.load("mini-fs", layer=1, input_size=130, **CPU)
    assert larger.spec.input_size == 128
    assert larger(Image.new("RGB", (200, 300))).shape == (1, 96)


def test_directories_and_the_last_layer_work(tmp_path: Path) -> None:
    save(tmp_path, "ViTModel")
    encode = layerboard.load(tmp_path, **CPU)
    assert encode.layer.index == encode.spec.depth
    assert encode.pooling == "cls"
    side = encode.spec.input_size
    assert encode(torch.zeros(2, 3, side, side, dtype=torch.uint8)).shape == (2, encode.dim)


def test_the_weights_that_are_kept_grow_with_the_layer() -> None:
    kept = [layerboard.load("mini-fs", layer=layer, **CPU).parameters for layer in (2, 4, 12, "final")]
    assert np.diff(kept).tolist() == [2 * 111_840, 8 * 111_840, 192]


def test_the_page_of_costs_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "cost.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, object] = {"images": [Image.new("RGB", (90, 70), "red")] * 2}
    exec(example, names)
    vectors, encode = names["vectors"], names["encode"]
    assert isinstance(vectors, torch.Tensor)
    assert vectors.shape == (2, 96)
    assert isinstance(encode, CutBackbone)
    assert (encode.spec.name, encode.layer, encode.dim) == ("mini-dino", Layer(8), 96)
    (entry,) = find_tasks([COST])
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert {*re.findall(r"`([a-z-]+)`", " ".join(cells))} == {*entry.metrics}
    rule = config_of(STANDARD, "cost")
    assert (rule.rounds, rule.warm_up, rule.most_rounds, rule.images) == (3, 1, 25, 40)
    assert f"{rule.single_seconds} s" in page
    assert f"{100 * (rule.gain - 1):.0f} %" in page
    assert f"{rule.seconds:.0f} s or after the time of {rule.images} single images" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "mini-fss"}, "did you mean mini-fs"),
        ({"name": "mini-f*"}, "stands for .* backbones .*; name one"),
        ({"layer": 13}, "mini-fs has no layer 13; its layers are"),
        ({"layer": "last"}, "layer= takes the number of a block, .* or 'final'; found 'last'"),
        ({"layer": True}, "layer= takes the number of a block"),
        (
            {"pooling": "max"},
            "pooling= takes auto, cls, mean, cls\\+mean, gem, all, grid or patchwise; found 'max'",
        ),
        ({"task": "knm"}, "there is no task 'knm'"),
        ({"task": "cost"}, "cost uses no images; name a task that does, such as knn"),
        ({"protocol": "mine"}, "there is no protocol 'mine'"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        layerboard.load(**({"name": "mini-fs", "device": "cpu"} | options))  # type: ignore[arg-type]
