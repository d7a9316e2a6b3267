"""ONNX files of others as backbones: which outputs are taken for what, and what is refused."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import avg_pool2d

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.load.backbone import describe_backbone, identify, load_backbone
from layerboard.zoo.own import onnx_file
from layerboard.zoo.own.onnx_export import Outputs, write_onnx
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import IMAGENET, Layer, Stage
from layerboard.zoo.view.views import ResizeCrop
from tests.zoo.conftest import Loader, Small
from tests.zoo.features.test_cut import FAMILIES
from tests.zoo.reduced import layers_of, pixels

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

CPU = torch.device("cpu")
MAPS = "maps = AveragePool <kernel_shape = [8, 8], strides = [8, 8]> (images)"
VECTOR = "pooled = GlobalAveragePool (images)\nvector = Flatten (pooled)"
TOKENS = f"""{MAPS}
shape = Constant <value_ints = [0, 3, 16]> ()
flat = Reshape (maps, shape)
patches = Transpose <perm = [0, 2, 1]> (flat)"""
PREFIXED = f"""{TOKENS}
axis = Constant <value_ints = [1]> ()
first = ReduceMean <keepdims = 1> (patches, axis)
tokens = Concat <axis = 1> (first, patches)"""
IMAGES = "float[N, 3, 32, 32] images"
VECTOR_OUT, MAPS_OUT = "float[N, 3] vector", "float[N, 3, 4, 4] maps"


def write(
    path: Path, body: str, outputs: str, image: str = "float[N, 3, 32, 32] images", **facts: str
) -> str:
    """A network as a file; gives its name as a backbone."""
    head = f'<ir_version: 9, opset_import: ["": 20]> net ({image}) => ({outputs})'
    model = onnx.parser.parse_model(f"{head} {{ {body} }}")
    onnx.helper.set_model_props(model, facts)
    onnx.save(model, path)
    return f"onnx:{path}"


def shown(name: str, images: Tensor) -> LayerFeatures:
    (spec,) = find([name])
    (features,) = layers_of(load_backbone(spec, device=CPU, cache_dir=Path()), images).values()
    return features


def colours(images: Tensor, mean: object = IMAGENET.mean, std: object = IMAGENET.std) -> Tensor:
    """Mean of each 8 x 8 pixels, normalised, [batch rows columns 3]."""
    cells = avg_pool2d(images.float() / 255, 8).permute(0, 2, 3, 1)
    return (cells - torch.tensor(mean)) / torch.tensor(std)


@pytest.mark.parametrize(
    ("body", "outputs", "has_cls"),
    [
        (MAPS, MAPS_OUT, False),
        (f"{MAPS}\ncells = Transpose <perm = [0, 2, 3, 1]> (maps)", "float[N, 4, 4, 3] cells", False),
        (TOKENS, "float[N, 16, 3] patches", False),
        (PREFIXED, "float[N, 17, 3] tokens", True),
        (f"{MAPS}\n{VECTOR}", f"{MAPS_OUT}, {VECTOR_OUT}", True),
    ],
)
def test_grids_and_vectors_are_told_by_their_shapes(
    body: str, outputs: str, has_cls: bool, tmp_path: Path
) -> None:
    name, images = write(tmp_path / "net.onnx", body, outputs), pixels(3, 32, 32)
    (spec,) = find([name])
    assert (spec.stages, spec.layers) == ((Stage(1, 3, 8),), (Layer(1),))
    assert (spec.has_cls, spec.prefix_tokens, spec.input_size) == (has_cls, int(has_cls), 32)
    features, expected = shown(name, images), colours(images)
    torch.testing.assert_close(features.grid, expected, atol=1e-5, rtol=0)
    if has_cls:
        torch.testing.assert_close(features.cls, expected.mean(dim=(1, 2)), atol=1e-5, rtol=0)


def test_a_vector_alone_is_a_grid_of_one_cell(tmp_path: Path) -> None:
    name, images = write(tmp_path / "net.onnx", VECTOR, VECTOR_OUT), pixels(2, 32, 32)
    assert find([name])[0].stages == (Stage(1, 3, 32),)
    torch.testing.assert_close(shown(name, images).mean, colours(images).mean(dim=(1, 2)))


def test_images_are_given_as_the_file_takes_them(tmp_path: Path) -> None:
    images = pixels(5, 32, 32)
    own = {"mean": "[0.1, 0.2, 0.3]", "std": "[0.5, 0.5, 0.25]", "input_size": "32"}
    name = write(tmp_path / "own.onnx", MAPS, "float[N, 3, H, W] maps", "float[N, 3, A, B] images", **own)
    expected = colours(images, (0.1, 0.2, 0.3), (0.5, 0.5, 0.25))
    torch.testing.assert_close(shown(name, images).grid, expected, atol=1e-5, rtol=0)
    assert describe_backbone(find([name])[0], None).endswith("std (0.5, 0.5, 0.25), as its metadata says")
    fixed = write(tmp_path / "fixed.onnx", MAPS, "float[2, 3, 4, 4] maps", "float[2, 3, 32, 32] images")
    torch.testing.assert_close(shown(fixed, images).grid, colours(images), atol=1e-5, rtol=0)
    last = MAPS.replace("images", "first")
    body = f"numbers = Cast <to = 1> (images)\nfirst = Transpose <perm = [0, 3, 1, 2]> (numbers)\n{last}"
    name = write(tmp_path / "bytes.onnx", body, MAPS_OUT, "uint8[N, 32, 32, 3] images")
    expected = 255 * colours(images, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    torch.testing.assert_close(shown(name, images).grid, expected, atol=1e-3, rtol=0)
    described = describe_backbone(find([name])[0], None)
    assert described.endswith("; images at 32 px, which it normalises itself")
    named = write(
        tmp_path / "said.onnx", body, MAPS_OUT, "uint8[N, 32, 32, 3] images", **own, backbone="x" * 999
    )
    assert ", which it normalises itself by mean (0.1, 0.2, 0.3) and std" in describe_backbone(
        find([named])[0], None
    )
    assert describe_backbone(find([named])[0], None).endswith("x...x" + "x" * 47 + "'")
    half = f"whole = Cast <to = 1> (images)\n{MAPS.replace('images', 'whole')}"
    name = write(tmp_path / "half.onnx", half, MAPS_OUT, "float16[N, 3, 32, 32] images")
    torch.testing.assert_close(shown(name, images).grid, colours(images), atol=1e-2, rtol=0)


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    name = write(tmp_path / "net.onnx", MAPS, MAPS_OUT)
    (spec,) = find([name])
    first = identify(spec, cache_dir=tmp_path)
    assert find([write(tmp_path / "net.onnx", VECTOR, VECTOR_OUT)])[0].stages == (Stage(1, 3, 32),)
    assert identify(spec, cache_dir=tmp_path) != first


def test_outputs_that_name_layers(tmp_path: Path) -> None:
    body = f"{MAPS.replace('maps', 'x')}\ngrid = Transpose <perm = [0, 2, 3, 1]> (x)\nother = Neg (grid)"
    name = write(tmp_path / "net.onnx", body, "float[N, 4, 4, 3] grid, float[N, 4, 4, 3] other")
    model = onnx.load(tmp_path / "net.onnx")
    for output, node, layer in zip(model.graph.output, model.graph.node[1:], ("8", "final"), strict=True):
        output.name = node.output[0] = f"{layer}.grid"
    model.graph.node[2].input[0] = "8.grid"
    onnx.helper.set_model_props(model, {"blocks": "12", "backbone": "mini-dino"})
    onnx.save(model, tmp_path / "net.onnx")
    (spec,) = find([name])
    assert spec.layers == (Layer(8), Layer(12, "final"))
    assert (spec.depth, spec.family, spec.name, spec.repository) == (12, "ONNX", "onnx:net.onnx", name)
    assert spec.licence == "unknown (the file says Apache-2.0)"
    onnx.helper.set_model_props(model, {"blocks": "7"})
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(InputError, match="has an output of layer 8; its metadata should say how many blocks"):
        find([name])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        *(
            ("mean", text, "three numbers as mean")
            for text in ("[" * 200_000, '"123"', "[1e999, 0, 0]", '{"a": 1}')
        ),
        *(
            ("std", text, "three numbers as std")
            for text in ("1" * 6_000, f"[{'9' * 4_000}, 1, 1]", "[1]", "[1e-320, 1, 1]")
        ),
        *(
            ("input_size", text, "whole number from 1 to 4096 as input_size")
            for text in ("0", "9" * 6_000, "4097", "٣٢")
        ),
        *(
            ("blocks", text, "whole number from 1 to 4096 as blocks")
            for text in ("-1", "1e3", "9999999", " ")
        ),
        ("input_size", "64", "takes images of 32 px; its metadata says input_size 64"),
    ],
)
def test_metadata_are_checked(name: str, text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words) as raised:
        find([write(tmp_path / "net.onnx", MAPS, MAPS_OUT, **{name: text})])
    assert len(str(raised.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("body", "outputs", "image", "words"),
    [
        (MAPS, MAPS_OUT, "float[N, 3, 32, 32] images, float[1] scale", "nothing but square RGB images"),
        (MAPS, "float[N, 1, 4, 4] maps", "float[N, 1, 32, 32] images", r"not images .*\['N', 1, 32, 32\]"),
        ("copy = Identity (images)", "float[N] copy", "float[N] images", r"not images .*\['N'\]"),
        ("zero = Constant <value = float[1, 3] {0.0, 0.0, 0.0}> ()", "float[1, 3] zero", "", "not nothing"),
        (MAPS, "float[N, 3, 4, 8] maps", "float[N, 3, 32, 64] images", "square RGB images"),
        ("copy = Identity (images)", "float[9, 3, 9999, 9999] copy", "float[9, 3, 9999, 9999] images",
         "takes 9 images of 9,999 px at once; at most 4,096 px a side"),
        (f"{MAPS}\naxis = Constant <value_ints = [1]> ()\nmask = ReduceMean (maps, axis)",
         "float[N, 1, 4, 4] mask", IMAGES, "gives one number for each image or cell, such as a mask"),
        ("axes = Constant <value_ints = [1, 2, 3]> ()\nmean = ReduceMean <keepdims = 0> (images, axes)\n"
         "axis = Constant <value_ints = [1]> ()\none = Unsqueeze (mean, axis)", "float[N, 1] one", IMAGES,
         "gives one number for each image or cell"),
        ("axis = Constant <value_ints = [1]> ()\ndepth = ReduceMean <keepdims = 0> (images, axis)",
         "float[N, 32, 32] depth", IMAGES, r"gives depth \[2, 32, 32\]"),
        ("none = Constant <value_ints = [0]> ()\nempty = Slice (images, none, none, none)",
         "float[A, B, C, D] empty", IMAGES, "it gives empty"),
        ("copy = Identity (images)", "int64[N, 3, 32, 32] copy", "int64[N, 3, 32, 32] images", "square RGB"),
        ("sides = Constant <value_ints = [99999999, 99999999]> ()\nzeros = ConstantOfShape (sides)\n"
         f"sum = ReduceSum (zeros)\n{MAPS.replace('maps', 'x')}\nmaps = Add (x, sum)", MAPS_OUT, IMAGES,
         "wants more memory than there is"),
        (f"{MAPS}\nmost = ReduceMax (maps)", "float[1, 1, 1, 1] most", IMAGES,
         r"gives most \[1, 1, 1, 1\]; onnx.utils"),
        (f"{VECTOR}\nother = Neg (vector)", f"{VECTOR_OUT}, float[N, 3] other", IMAGES,
         r"should give a vector \[batch dim\].*vector \[2, 3\], other \[2, 3\]"),
        (f"{MAPS}\nwide = Flatten (maps)", f"{MAPS_OUT}, float[N, 48] wide", IMAGES,
         "both of one width"),
        ("best = ArgMax <axis = 1> (images)", "int64[N, 1, 32, 32] best", IMAGES, "it gives no numbers"),
    ],
)  # fmt: skip
def test_files_that_are_no_backbones(body: str, outputs: str, image: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        find([write(tmp_path / "net.onnx", body, outputs, image)])


ACROSS = f"{MAPS.replace('maps', 'x')}\naxis = Constant <value_ints = [0]> ()\nmean = ReduceMean (x, axis)"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"{ACROSS}\nmaps = Sub (x, mean)", "with the images beside it, such as by BatchNorm"),
        (
            f"{ACROSS}\nnoise = RandomNormalLike (x)\nmaps = Add (x, noise)",
            "with the images beside it, .* or by chance",
        ),
        (
            f"{ACROSS}\nmaps = Softmax <axis = 0> (x)",
            r"net\.onnx, of maps: the features of an image change by .* at layer 1 with",
        ),
    ],
)
def test_features_that_are_not_of_the_image_alone_are_refused(body: str, words: str, tmp_path: Path) -> None:
    for batch in ("N", "2"):
        shapes = (each.replace("N", batch) for each in (MAPS_OUT, IMAGES))
        with pytest.raises(InputError, match=words):
            find([write(tmp_path / "net.onnx", body, *shapes)])


def test_a_file_for_one_image_mixes_nothing(tmp_path: Path) -> None:
    shapes = (each.replace("N", "1") for each in (MAPS_OUT, IMAGES))
    name = write(tmp_path / "net.onnx", f"{ACROSS}\nmaps = Sub (x, mean)", *shapes)
    assert not shown(name, pixels(3, 32, 32)).grid.any()


def test_what_is_no_file_of_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.onnx").write_text("no network")
    with pytest.raises(InputError, match=r"net\.onnx is no network that onnxruntime can run: .*Protobuf"):
        find([f"onnx:{tmp_path / 'net.onnx'}"])
    with pytest.raises(InputError, match=r"expected a file of ONNX at nowhere: No such file"):
        find(["onnx:nowhere"])
    with pytest.raises(InputError, match=r"expected a file of ONNX at .*: Is a directory"):
        find([f"onnx:{tmp_path}"])
    name = write(tmp_path / "net.onnx", MAPS, MAPS_OUT, std="[1, 1, 0]")
    with pytest.raises(InputError, match=r"should give three numbers as std, not '\[1, 1, 0\]'"):
        find([name])
    (spec,) = find([write(tmp_path / "net.onnx", MAPS, MAPS_OUT)])
    with pytest.raises(InputError, match="runs with dtype float32, the run with bfloat16"):
        load_backbone(replace(spec, dtype="bfloat16"), device=CPU, cache_dir=tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    onnx_file._opened.cache_clear()
    with pytest.raises(InputError, match=r"ONNX needs onnxruntime; .*'layerboard\[onnx\]'"):
        find([spec.repository])


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_one_of_each_architecture_is_exported(
    name: str, small: Small, loader: Loader, tmp_path: Path
) -> None:
    backbone = loader(small(name).spec)
    spec, to = backbone.spec, tmp_path / "net.onnx"
    image = Image.fromarray(pixels(1, 90, 80)[0].permute(1, 2, 0).numpy())
    outputs: Outputs = [(Layer(spec.depth // 2), "mean"), (spec.layers[-1], "grid")]
    differences = write_onnx(backbone, outputs, [image, image], ResizeCrop(*[spec.input_size] * 2), None, to)
    assert max(share for _, _, share in differences) < 1e-5


def test_names_that_are_no_text_are_said(tmp_path: Path) -> None:
    name = write(tmp_path / "net.onnx", MAPS, MAPS_OUT)
    path = tmp_path / "net.onnx"
    whole = path.read_bytes()
    for old, new in ((b"\x12\x01N", b"\x12\x01\xce"), (b"images", b"imag\xce\xce")):
        path.write_bytes(whole.replace(old, new))
        with pytest.raises(InputError, match=r"is damaged: its names are no text in UTF-8; fetch it again"):
            find([name])
