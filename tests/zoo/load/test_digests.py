"""Files of weights: what decides features is in the identity, and the published file is known."""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import torch
from onnx import numpy_helper
from safetensors.torch import load_file, save_file

import layerboard
from layerboard.benchmark.plan.backbones import with_weights
from layerboard.mini import checkpoints
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.load.backbone import identify, load_backbone
from layerboard.zoo.load.checkpoint import WEIGHT_FILES, weights_sha256
from layerboard.zoo.load.files import locate
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, WeightFile
from layerboard.zoo.spec.origin import ORIGINAL
from tests.zoo.load.test_infer import save
from tests.zoo.own.test_onnx_file import MAPS, MAPS_OUT, write


def identity(name: str) -> BackboneIdentity:
    return identify(find([name])[0], cache_dir=Path())


@pytest.mark.parametrize("place", ["weights.bin", "net.onnx.data", "deep/er/w"])
def test_external_tensors_of_an_onnx_file(place: str, tmp_path: Path) -> None:
    name = write(tmp_path / "net.onnx", MAPS, MAPS_OUT)
    model = onnx.load(tmp_path / "net.onnx")
    initializer = numpy_helper.from_array(torch.zeros(2, 3).numpy(), "unused")
    model.graph.initializer.append(initializer)
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, location=place, size_threshold=0)
    first = identity(name)
    assert identity(name) == first
    content = bytearray((tmp_path / place).read_bytes())
    content[-1] ^= 1
    (tmp_path / place).write_bytes(content)
    second = identity(name)
    assert (second.revision, second.fingerprint) != (first.revision, first.fingerprint)
    assert second.revision != first.revision
    (tmp_path / place).unlink()
    with pytest.raises(InputError, match=f"keeps tensors in '{Path(place).name}', which is not there"):
        identity(name)


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("preprocessor_config.json", "image_mean", [0.5, 0.5, 0.4]),
        ("preprocessor_config.json", "image_std", [0.5, 0.5, 0.4]),
        ("preprocessor_config.json", "note", "another"),
        ("config.json", "layer_norm_eps", 0.1),
    ],
)
def test_files_of_a_directory(file: str, key: str, value: object, tmp_path: Path) -> None:
    save(tmp_path, "ViTModel")
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5], "size": 56}')
    first = identity(str(tmp_path))
    path = tmp_path / file
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    second = identity(str(tmp_path))
    assert second.revision != first.revision
    assert second.fingerprint != first.fingerprint


OWN = """
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import BackboneSpec, Stage
import torch

class Own:
    spec = BackboneSpec(name="own", family="other", supervision="none", repository="", heads=None,
        stages=(Stage(1, 8, 16),), prefix_tokens=0, has_cls=False, has_final=False, input_size=32)
    revision = fingerprint = "1"
    device, dtype = torch.device("cpu"), torch.float32
    scale = 1

    def visit(self, pixels, visitor, layers=None):
        grid = pixels[:, 0].float().unflatten(1, (-1, 16)).unflatten(3, (-1, 16)).mean((2, 4))
        for layer in layers or self.spec.layers:
            visitor(LayerFeatures(layer, None, grid[..., None].expand(-1, -1, -1, 8) * self.scale))
"""


def test_the_file_of_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = []
    for scale in (1, 2):
        Path(f"own_{scale}.py").write_text(OWN.replace("scale = 1", f"scale = {scale}"))
        seen.append(identity(f"own_{scale}:Own").fingerprint)
        del sys.modules[f"own_{scale}"]
    assert seen[0] != seen[1]


def test_generated_weights_that_were_changed_are_written_again(tmp_path: Path) -> None:
    (spec,) = find(["mini-resnet-untrained"])
    path = locate(spec, tmp_path).weights[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-4] + b"\1\1\1\1")
    assert locate(spec, tmp_path).weights[0].read_bytes() == whole
    (path.parent / checkpoints.SUMS).unlink()
    assert locate(spec, tmp_path).weights[0].read_bytes() == whole


def test_zero_weights_are_said(tmp_path: Path) -> None:
    save(tmp_path, "ViTModel")
    path = tmp_path / "model.safetensors"
    zero = {name: torch.zeros_like(tensor) for name, tensor in load_file(path).items()}
    save_file(zero, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"all weights in .* are zero; give a trained network's"):
        load_backbone(find([str(tmp_path)])[0], device=torch.device("cpu"), cache_dir=tmp_path)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 8, 8), torch.nn.Conv2d(8, 8, 1))
    for weight in net.parameters():
        weight.data.zero_()
    with pytest.raises(InputError, match="all weights of the Sequential are zero"):
        layerboard.from_module(net, name="zero")


def test_the_named_network_is_in_the_identity(tmp_path: Path) -> None:
    (spec,) = find(["dino-s16"])
    path = tmp_path / "two.pth"
    torch.save({"teacher": {"patch_embed.proj.weight": torch.ones(1)}}, path)
    (named,) = with_weights([spec], {spec.name: Path(f"{path}#teacher")})
    (plain,) = with_weights([spec], {spec.name: path})
    assert locate(named, None).revision == f"{locate(plain, None).revision}#teacher"


BYTES = b"weights" * 100
DIGEST = hashlib.sha256(BYTES).hexdigest()


def on_the_hub(folder: Path, name: str, content: bytes = BYTES) -> BackboneSpec:
    """DINO's B/16, with that file at its pinned commit in a cache as huggingface_hub lays it out."""
    (spec,) = find(["dino-b16"])
    snapshot = folder / "hub" / "models--facebook--dino-vitb16" / "snapshots" / str(spec.revision)
    snapshot.mkdir(parents=True)
    (snapshot / name).write_bytes(content)
    return spec


@pytest.mark.parametrize(
    "known",
    [
        WeightFile("pytorch_model.bin", DIGEST, len(BYTES)),
        WeightFile("pytorch_model.bin", DIGEST[:8]),  # first digits
        WeightFile("pytorch_model.bin", size=len(BYTES)),
        WeightFile(size=len(BYTES)),  # of all files
        WeightFile("model.safetensors", "0" * 64, 3),  # another file
        WeightFile("", "0" * 64),  # of which file, nobody knows
        WeightFile(),
    ],
)
def test_the_published_file_is_taken(tmp_path: Path, known: WeightFile) -> None:
    spec = on_the_hub(tmp_path, "pytorch_model.bin")
    found = locate(replace(spec, file=known), tmp_path)
    assert (found.revision, found.weights[0].name) == (spec.revision, "pytorch_model.bin")


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (WeightFile("pytorch_model.bin", DIGEST, 699, "x"), r"700 bytes, .* published with 699 \(x\); fetch"),
        (WeightFile("pytorch_model.bin", "01234567"), f"SHA-256 {DIGEST}, and was published with 01234567 "),
        (WeightFile(size=699), "700 bytes, and was published with 699"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, known: WeightFile, message: str) -> None:
    spec = replace(on_the_hub(tmp_path, "pytorch_model.bin"), file=known)
    with pytest.raises(InputError, match=f"^dino-b16: pytorch_model.bin has .*{message}"):
        locate(spec, tmp_path)
    with pytest.raises(InputError, match="name dino-b16@REVISION for another"):
        locate(spec, tmp_path)


def test_a_given_file_of_the_published_name_must_be_it(tmp_path: Path) -> None:
    (spec,) = find(["pe-core-b16"])
    path = tmp_path / spec.file.name
    path.write_bytes(BYTES)
    given = replace(spec, repository=str(path), origin=ORIGINAL)
    with pytest.raises(InputError, match=r"has 700 bytes, .* 1,790,786,632 .*; fetch it again, or rename it"):
        locate(given, tmp_path)
    path.rename(tmp_path / "mine.pt")
    assert locate(replace(given, repository=str(tmp_path / "mine.pt")), tmp_path).weights


def test_the_digest_of_several_files_is_that_of_the_lines_of_sha256sum(tmp_path: Path) -> None:
    names = ("model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors")
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    lines = "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in sorted(names))
    paths = [tmp_path / name for name in names]
    assert weights_sha256(paths) == hashlib.sha256(lines.encode()).hexdigest()
    assert weights_sha256(paths[:1]) == hashlib.sha256(names[0].encode()).hexdigest()


def test_what_is_known_of_files_has_its_form() -> None:
    """Every pinned commit and every digest has a source; what is not pinned says which commits are known."""
    pinned = 0
    for spec in find(["*"]):
        file = spec.file
        assert set(file.sha256) <= set("0123456789abcdef")
        assert len(file.sha256) in (0, 8, 12, 64)
        assert file.size is None or file.size > 10**6
        assert file.name in (*WEIGHT_FILES, "") or spec.original.endswith(file.name), spec.name
        if spec.revision or file.sha256 or file.size:
            assert file.source, spec.name
        pinned += spec.revision is not None
    assert pinned >= 55
    assert not [spec.name for spec in find(["tipsv2-b14", "beit-*", "bit-50"]) if spec.revision]
