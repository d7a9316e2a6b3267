"""A file that is not the published one is refused by its size or digest, in one sentence."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.checkpoint import WEIGHT_FILES, weights_sha256
from layerboard.zoo.load.files import locate
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.spec.origin import ORIGINAL
from layerboard.zoo.spec.weights import WeightFile

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
