"""Files in the place of weights that are something else: each is called what it is."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import identify
from layerboard.zoo.registry.find import find
from tests.zoo.published import Published, publish
from tests.zoo.reduced import reduce

ONES = torch.ones(2)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def archive(path: Path, name: str = "weights/readme.txt") -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, b"text")


def tar(path: Path) -> None:
    with tarfile.open(path, "w") as file:
        file.addfile(tarfile.TarInfo("weights.pth"), io.BytesIO())


def numpy_array() -> bytes:
    np.save(file := io.BytesIO(), np.ones(3))
    return file.getvalue()


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
        (lambda path: path.write_text('{"error": "no"}'), "is a JSON file; give the file of weights, or the"),
        (lambda path: path.write_bytes(gzip.compress(path.read_bytes())), "is a packed file; unpack it"),
        (tar, "is an archive of tar; unpack it first"),
        (archive, "is a zip archive of weights/readme.txt; unpack it"),
        (lambda path: path.write_bytes(numpy_array()), "is a NumPy array; give the weights"),
        (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99)), "is a file of HDF5, as Keras"),
        (lambda path: path.write_bytes(b""), r"is not a readable file of weights \(it is empty\); fetch it"),
        (half, r"file of weights \(its end is missing, as of an unfinished download\); fetch"),
        (lambda path: save_file({"x": ONES}, path), "is a safetensors file; give it a name"),
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
    save_file(published.tensors, path)
    whole = path.stat().st_size
    half(path)
    words = rf"is not a readable safetensors file \(only {whole // 2:,} of {whole:,} bytes are there, as of"
    with pytest.raises(InputError, match=words):
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
