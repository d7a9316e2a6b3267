"""Backbones as ONNX files: what is exported gives what torch gives, and is scored alike."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import layerboard
from layerboard.benchmark.commands.result import Files
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.cut import CutBackbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.files import locate
from layerboard.zoo.own import onnx_export
from layerboard.zoo.own.module.network import NetworkCopy
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.runs import Cli, run
from tests.zoo.own.module.networks import SIZE, Block, ConvNet, Vit
from tests.zoo.reduced import pixels

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

BAR = 1e-5
"""Largest difference from torch, of the largest number of a layer."""


@pytest.fixture(scope="module", autouse=True)
def _without_lines_of_source() -> Iterator[None]:
    """The exporter looks up no line of code for each node: that takes a tenth of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.fx.config.do_not_emit_stack_traces", True, raising=False)
        yield


def conv_net() -> NetworkCopy:
    """Two stages of small blocks: to export a packaged network takes several times as long."""
    net = ConvNet()
    blocks = [*net.layer1, *net.layer2]
    return layerboard.from_module(net, name="conv", blocks=blocks, image_size=SIZE, verbose=False)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Two blocks of `conv_net`, whose later ones are left out."""
    file = tmp_path_factory.mktemp("onnx") / "net.onnx"
    return layerboard.export("onnx", conv_net(), layer="1,3", to=file)


@pytest.mark.slow
def test_an_export_says_how_far_it_is_from_torch(exported: Files) -> None:
    assert list(exported.frame["output"]) == ["1.grid", "3.grid"]
    assert exported.frame["share"].between(0, BAR).all()
    assert exported.notes[0].startswith("1.grid: at most ")
    assert exported.notes[0].endswith(" of its largest number (limit 0.0001)")
    (path,) = exported.paths
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.slow
def test_anybody_can_run_it(exported: Files) -> None:
    session = onnxruntime.InferenceSession(exported.paths[0], providers=["CPUExecutionProvider"])
    facts = session.get_modelmeta().custom_metadata_map
    own = conv_net()
    assert (facts["backbone"], facts["input_size"]) == ("conv", str(SIZE))
    assert facts["mean"] == str([*own.spec.mean])
    assert facts["view"] == "ResizeCrop(short=37, crop=32)"
    images = pixels(3, SIZE, SIZE)
    first, last = session.run(["1.grid", "3.grid"], {"pixels": images.numpy()})
    encode = layerboard.load(own, layer=3, pooling="grid")
    torch.testing.assert_close(torch.from_numpy(last), encode(images), atol=1e-4, rtol=0)
    assert first.shape == (3, 8, 8, 8)
    nodes = onnx.load(exported.paths[0]).graph.node
    assert not any(node.metadata_props for node in nodes)  # no lines of anybody's source


@pytest.mark.slow
def test_it_is_scored_as_the_backbone_is(exported: Files, data: Path, tmp_path: Path) -> None:
    name = f"onnx:{exported.paths[0]}"
    records = run(tmp_path, [name, conv_net()], "knn", "spair", data=data, layers="1,3")
    called = f"onnx:{exported.paths[0].name}"  # no path in what is shown
    rows = records[records["metric"].isin(["top-1", "PCK@0.1"]) & records["value"].notna()]
    assert {*rows["layer"]} == {1, 3}
    assert rows.groupby("backbone")["depth"].agg(set).to_dict() == {called: {3}, "conv": {5}}
    columns = ["task", "layer", "pooling", "metric", "value"]
    one, other = (rows[rows["backbone"] == each][columns].values.tolist() for each in (called, "conv"))
    assert one == other
    encode = layerboard.load(name)
    assert encode(Image.new("RGB", (80, 60), "green")).shape == (1, 16)
    with pytest.raises(InputError, match=r"onnx:net\.onnx has layers 0 to 3, there is no layer 4"):
        run(tmp_path, [name], "knn", data=data, layers="4")


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["cls+mean", "gem"])
def test_a_file_of_vectors_has_those_of_torch_in_its_pooling(
    pooling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a network of three small blocks, once with a tolerance that no file keeps, of one translation."""
    file, images = tmp_path / "net.onnx", pixels(2, SIZE, SIZE)
    own = layerboard.from_module(Vit(), blocks="blocks", image_size=SIZE, verbose=False)
    options: dict[str, Any] = {"batch": 2, "layer": 1, "pooling": pooling, "to": file}
    programs, translate = list[Any](), onnx_export._translated

    def translated(*arguments: Any) -> Any:
        programs.extend([] if programs else [translate(*arguments)])
        return programs[0]

    monkeypatch.setattr(onnx_export, "_translated", translated)
    with monkeypatch.context() as patch:
        patch.setattr(onnx_export, "TOLERANCE", -1)
        words = f"as ONNX, 1.{pooling} differs from torch by "
        with pytest.raises(InputError, match=f"{re.escape(words)}.* no file was kept"):
            layerboard.export("onnx", own, **options)
    assert [*tmp_path.iterdir()] == []
    layerboard.export("onnx", own, **options)
    session = onnxruntime.InferenceSession(file)
    (vectors,) = session.run([f"1.{pooling}"], {"pixels": images.numpy()})
    backbone = load_backbone(own.spec, device=torch.device("cpu"), cache_dir=tmp_path)
    of_torch = CutBackbone(backbone, Layer(1), pooling, ResizeCrop(SIZE, SIZE))  # type: ignore[arg-type]
    of_file = layerboard.load(f"onnx:{file}", layer=1, pooling=pooling)  # type: ignore[arg-type]
    for encode in (of_torch, of_file):
        torch.testing.assert_close(torch.from_numpy(vectors), encode(images), atol=1e-4, rtol=0)
    assert session.get_modelmeta().custom_metadata_map["poolings"] == pooling
    assert of_file.pooling == layerboard.load(f"onnx:{file}").pooling == pooling


@pytest.mark.parametrize(("name", "pooling"), [("mini-fs", "cls"), ("mini-resnet", "patchwise")])
@pytest.mark.slow
def test_a_file_of_vectors_is_scored_in_its_pooling(
    name: str, pooling: str, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "net.onnx"
    layerboard.export("onnx", name, layer=1, pooling=pooling, to=file)  # type: ignore[arg-type]
    session = onnxruntime.InferenceSession(file)
    (vectors,) = session.run([f"1.{pooling}"], {"pixels": pixels(2, 64, 64).numpy()})
    for source in (name, f"onnx:{file}"):
        own = layerboard.load(source, layer=1, pooling=pooling)(pixels(2, 64, 64))  # type: ignore[arg-type]
        torch.testing.assert_close(torch.from_numpy(vectors), own, atol=1e-4, rtol=0)
    facts = session.get_modelmeta().custom_metadata_map
    assert (facts["backbone"], facts["layers"], facts["poolings"]) == (name, "1", pooling)
    records = run(tmp_path, [f"onnx:{file}"], "knn", data=data, layers="1")
    assert {*records["pooling"]} == {pooling}
    assert records["value"].notna().all()
    assert layerboard.load(f"onnx:{file}").pooling == pooling
    other = "mean" if pooling == "cls" else "grid"
    with pytest.raises(InputError, match=re.escape(f"gives vectors of the pooling '{pooling}' only")):
        layerboard.load(f"onnx:{file}", pooling=other)  # type: ignore[arg-type]


def test_load_takes_weights(tmp_path: Path) -> None:
    (spec,), folder = find(["mini-fs"]), tmp_path / "other"
    copytree(locate(spec, None).weights[0].parent, folder)
    tensors = load_file(folder / "model.safetensors")
    name = next(name for name in tensors if ".3." in name and name.endswith("weight"))
    save_file(tensors | {name: 2 * tensors[name]}, folder / "model.safetensors")
    one = layerboard.load("mini-fs", layer=4, weights=folder)(pixels(1, 64, 64))
    torch.testing.assert_close(
        one, layerboard.load("mini-fs", layer=4, weights=f"mini-fs={folder}")(pixels(1, 64, 64))
    )
    assert (one - layerboard.load("mini-fs", layer=4)(pixels(1, 64, 64))).abs().max() > 0.01


def test_what_cannot_be_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    class Bessel(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + torch.special.bessel_j0(x)

    net = Vit()
    net.blocks[1] = Bessel()
    own = layerboard.from_module(net, blocks="blocks", image_size=SIZE, verbose=False)
    to = tmp_path / "net.onnx"
    with pytest.raises(InputError, match=r"Vit cannot be exported to ONNX: its code, .* give batch=N"):
        layerboard.export("onnx", own, to=to)
    with pytest.raises(InputError, match=r"cannot be exported to ONNX: No ONNX function .*bessel_j0"):
        layerboard.export("onnx", own, to=to, batch=1)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        refused = cli("export", "onnx", "mini-fs", "--to", to)
        assert (refused.code, "install it with: pip install 'layerboard[onnx]'" in refused.error) == (2, True)
    for words, said in (
        (("onnx",), "export onnx takes a backbone behind it"),
        (("csv", "mini-fs"), "export csv takes no backbone behind it"),
        (("onnx", "mini-random"), "mini-random is no network of torch that could be exported"),
        (("onnx", "mini-resnet", "--pooling", "cls"), "mini-resnet has no class token"),
        (
            ("onnx", "mini-fs@bfloat16"),
            "mini-fs@bfloat16 computes in bfloat16; networks are exported in float32",
        ),
        (("onnx", "mini-resnet", "--layer", "0"), "name blocks from 1 on"),
        (("onnx", "mini-fs", "--to", tmp_path), "--to takes the file of the network"),
    ):
        assert said in cli("export", *words, *(() if "--to" in words else ("--to", to))).error
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mini-fs", "mini-clip", "mini-beit", "mini-resnet", "mini-fs64-noskip6"])
def test_every_layer_of_each_architecture_is_that_of_torch(name: str, tmp_path: Path) -> None:
    frame = layerboard.export("onnx", name, layer="all", to=tmp_path / "net.onnx").frame
    assert frame["share"].between(0, BAR).all()
    (spec,) = find([f"onnx:{tmp_path / 'net.onnx'}"])
    assert spec.layers == find([name])[0].layers[1:]
