"""Files in the place of weights that are something else, damaged or odd: each is called what it is."""

import gzip
import json
import random
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from layerboard.zoo.errors import InputError
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.backbone import identify
from layerboard.zoo.load.checkpoint import read_weights
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from tests.zoo.conftest import Loader, Small
from tests.zoo.load.test_infer import save
from tests.zoo.published import Published, publish
from tests.zoo.reduced import reduce

ONES = torch.ones(2)
OTHER = r"is (refused: it is damaged|not a readable file of weights \(.+\); fetch it again)"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def archive(path: Path, name: str = "weights/readme.txt") -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, b"text")


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return publish("dino", tmp_path)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: path.write_bytes(POINTER), "is a pointer of Git LFS, not the file itself; fetch"),
        (lambda path: path.write_bytes(b"<!DOCTYPE html>\n<html>"), "is a web page, not the file itself"),
        (lambda path: path.write_bytes(b"\n <html lang='en'>"), "is a web page, not the file itself"),
        (lambda path: path.write_text('{"error": "no"}'), OTHER),
        (lambda path: path.write_bytes(gzip.compress(path.read_bytes())), OTHER),
        (archive, OTHER),
        (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99)), OTHER),
        (lambda path: path.write_bytes(b""), OTHER),
        (half, OTHER),
        (
            lambda path: torch.save({"a.lora_A.weight": ONES}, path),
            r"is an adapter \(such as LoRA\).*; merge",
        ),
        (lambda path: torch.save({"model": {"a.hada_w1_a": ONES}}, path), r"is an adapter \(such as LoRA\)"),
    ],
)
def test_a_file_is_called_what_it_is(
    write: Callable[[Path], object], words: str, published: Published
) -> None:
    write(Path(published.spec.repository))
    with pytest.raises(InputError, match=words):
        identify(published.spec, cache_dir=Path())


def test_safetensors_that_are_not_whole_or_of_torch(published: Published, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    spec = replace(published.spec, repository=str(path))
    save_file(published.tensors, tmp_path / "net.pth")  # read by its content, whatever its name
    assert identify(replace(spec, repository=str(tmp_path / "net.pth")), cache_dir=tmp_path)
    save_file(published.tensors, path)
    half(path)
    with pytest.raises(InputError, match=r"is not a readable safetensors file \(.* not fully covered\)"):
        identify(spec, cache_dir=tmp_path)
    torch.save(published.tensors, path)
    with pytest.raises(InputError, match=r"is a file of torch.save; give it a name that ends in \.pth"):
        identify(spec, cache_dir=tmp_path)


def test_a_directory_without_weights_says_what_it_holds(tmp_path: Path) -> None:
    reduced = reduce(find(["dino-s16"])[0], tmp_path)
    (weights := reduced.folder / "model.safetensors").rename(reduced.folder / "other.safetensors")
    with pytest.raises(
        InputError, match=r"has no weights; expected model.safetensors or .*, found config.json, .*other"
    ):
        identify(reduced.spec, cache_dir=tmp_path)
    (reduced.folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(InputError, match=r"is an adapter \(such as LoRA\), which changes another network"):
        identify(reduced.spec, cache_dir=tmp_path)
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors", "c": "other.safetensors"}}
    (reduced.folder / "model.safetensors.index.json").write_text(json.dumps(index))
    words = (
        "lists 3 files, of which one.safetensors, two.safetensors are not there; put all of them beside it"
    )
    with pytest.raises(InputError, match=words):
        identify(reduced.spec, cache_dir=tmp_path)
    weights.write_bytes(POINTER)
    with pytest.raises(InputError, match=r"model.safetensors is a pointer of Git LFS"):
        identify(reduced.spec, cache_dir=tmp_path)
    (reduced.folder / "config.json").write_bytes(POINTER)
    with pytest.raises(InputError, match=r"config.json is a pointer of Git LFS"):
        find([str(reduced.folder)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_channels": 1}, "describes a network for images of 1 channels; expected 3, RGB"),
        ({"patch_size": "14"}, "describes no network that transformers can build: .*patch_size"),
        ({"hidden_size": "wide"}, "describes no network that transformers can build: .*hidden_size"),
        ({"patch_size": 0}, "a number of blocks, channels, heads or pixels below 1"),
        ({"num_hidden_layers": 0}, "a number of blocks, channels, heads or pixels below 1"),
        ({"num_attention_heads": 0}, "a number of blocks, channels, heads or pixels below 1"),
        ({"image_size": [56, 28]}, "must be square; the configuration says 56 x 28"),
    ],
)
def test_odd_configurations(change: dict[str, object], message: str, tmp_path: Path) -> None:
    save(tmp_path, "ViTModel")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError) as error:
        infer(str(tmp_path), None, None)
    assert re.search(message, str(error.value))
    assert "\n" not in str(error.value)


OF_CODE = (
    *("_attn_implementation", "attn_implementation", "_attn_implementation_internal"),
    *("_experts_implementation", "experts_implementation", "auto_map", "quantization_config"),
    *("transformers_weights", "base_model_tp_plan", "per_layer_config", "anything_new"),
)
"""Keys that could name a kernel on the Hub, for which transformers would fetch and run code."""


@pytest.mark.parametrize("name", ["dino-s16", "clip-b16", "mae-b16"])
def test_a_configuration_chooses_no_code(name: str, small: Small, loader: Loader) -> None:
    reduced = small(name)
    path = reduced.folder / "config.json"
    values = json.loads(path.read_text())
    for holder in (values, values.get("vision_config", {})):
        holder |= {key: f"evil/{key}" for key in OF_CODE}
    path.write_text(json.dumps(values))
    backbone = loader(reduced.spec)
    assert isinstance(backbone, HookedBackbone)
    config = backbone._network.body.config
    assert config._attn_implementation in ("sdpa", "eager")  # type: ignore[union-attr]
    assert "evil" not in repr(vars(config))


PLACES = ([], ["a"], [["a", "b"]], "a", 3, None, {}, {"a": "b\0c"}, {"a": ".."}, {"a": "../b"})


@pytest.mark.parametrize("places", PLACES)
def test_an_index_that_lists_no_files(places: object, small: Small, loader: Loader) -> None:
    reduced = small("dino-s16")
    (reduced.folder / "model.safetensors").unlink()
    (reduced.folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.raises(InputError, match=r"index\.json,? (does not list|which is malformed) .*weight_map"):
        loader(reduced.spec)


def test_damaged_files_of_weights(tmp_path: Path) -> None:
    """Bytes changed in what torch and safetensors write, and bytes that nobody wrote."""
    draw = random.Random(0)
    tensors = {"a.weight": torch.ones(4, 4), "b": torch.zeros(3)}
    originals = [b"\x80\x02", b"PK\3\4", b"(", b""]
    for zipped in (True, False):
        torch.save({"state_dict": tensors}, tmp_path / "whole", _use_new_zipfile_serialization=zipped)
        originals.append((tmp_path / "whole").read_bytes())
    save_file(tensors, tmp_path / "whole")
    originals.append((tmp_path / "whole").read_bytes())
    sentences = []
    for _ in range(200):
        content = bytearray(draw.choice(originals) or draw.randbytes(30))
        for _ in range(4):
            content[draw.randrange(min(len(content), draw.choice([40, 200, 5000])))] = draw.randrange(256)
        path = tmp_path / draw.choice(["file.pth", "file.safetensors"])
        path.write_bytes(content)
        try:
            read_weights([path])
        except InputError as error:
            sentences.append(str(error))
    assert len(sentences) > 150
    assert not [text for text in sentences if "\n" in text or str(tmp_path) not in text]


@pytest.mark.parametrize("name", ["many.safetensors", "many.pth"])
def test_a_list_of_very_many_tensors_is_refused_unread(tmp_path: Path, name: str) -> None:
    tensors = {"weight" * 1_000_000: torch.zeros(1)}
    save_file(tensors, tmp_path / name) if name.endswith("safetensors") else torch.save(
        tensors, tmp_path / name
    )
    with pytest.raises(InputError, match=r"its list of tensors has 6,000,\d+ bytes, of at most 4,194,304"):
        read_weights([tmp_path / name])
