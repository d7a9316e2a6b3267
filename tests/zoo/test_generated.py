"""The mini suites' weights, packaged and seeded, and the random floor."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from layerboard.mini import checkpoints as mini
from layerboard.mini import random_weights as weights
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.spec.origin import PACKAGED
from tests.zoo.conftest import CPU, Loader
from tests.zoo.reduced import grids_of, layers_of, pixels

MODELS = tuple(spec for spec in find(["mini-*-untrained"]))
PACKAGED = tuple(spec for spec in find(["mini-*"]) if spec.origin == PACKAGED)


@pytest.mark.parametrize("spec", [*PACKAGED, *MODELS], ids=lambda spec: spec.name)
def test_layers_are_neither_dead_nor_copies(spec: BackboneSpec, kept: Loader) -> None:
    for before, after in pairwise(grids_of(kept(spec), pixels(4, 64, 64)).values()):
        assert 0.1 < after.std() < 20
        if before.shape == after.shape:
            assert (after - before).norm() > 0.02 * before.norm()


def test_the_same_on_every_machine(tmp_path: Path) -> None:
    (spec,) = find(["mini-fs-untrained"])
    weights.write_random_weights(spec, tmp_path, mini.SEED)
    weight = load_file(tmp_path / "model.safetensors")["layers.5.mlp.fc1.weight"]
    torch.testing.assert_close(weight[0, :3], torch.tensor([-0.047761, -0.138, 0.054921]), rtol=0, atol=1e-5)


def test_generation_leaves_global_random_state_alone(tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    mini.generated(MODELS[0], tmp_path)
    assert torch.equal(state, torch.random.get_rng_state())


def test_weights_are_written_once_and_atomically(tmp_path: Path) -> None:
    first = mini.generated(MODELS[0], tmp_path)
    weights_file = first[0] / "model.safetensors"
    written = weights_file.stat().st_mtime_ns
    assert mini.generated(MODELS[0], tmp_path) == first
    assert weights_file.stat().st_mtime_ns == written
    assert [path.name for path in (tmp_path / "generated").iterdir()] == [first[0].name]


def test_several_writers_at_once(tmp_path: Path) -> None:
    (spec,) = find(["mini-clip-untrained"])
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: mini.generated(spec, tmp_path), range(8)))
    assert len(found) == 1
    assert len(list((tmp_path / "generated").iterdir())) == 1
    assert load_file(found.pop()[0] / "model.safetensors")


def test_losing_the_race_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (spec,) = find(["mini-fs-untrained"])
    first = mini.generated(spec, tmp_path / "first")[0]

    def write_too_late(spec: BackboneSpec, draft: Path, seed: int) -> None:
        (draft / "late").touch()
        shutil.copytree(first, draft.parent / first.name)

    monkeypatch.setattr(weights, "write_random_weights", write_too_late)
    folder = mini.generated(spec, tmp_path / "second")[0]
    assert list(folder.parent.iterdir()) == [folder]
    assert not (folder / "late").exists()


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(InputError, match=r"cannot be written: .*; choose another --cache"):
        load_backbone(MODELS[0], device=CPU, cache_dir=blocker)


@pytest.mark.parametrize("spec", PACKAGED, ids=lambda spec: spec.name)
def test_trained_weights_come_with_the_package(spec: BackboneSpec, kept: Loader) -> None:
    assert spec.trained
    assert kept(spec).revision.startswith("sha256:")
    folder = mini.WEIGHTS / spec.name
    weights_file = load_file(folder / "model.safetensors")
    assert {tensor.dtype for tensor in weights_file.values()} <= {torch.float16, torch.int64}
    card = (folder / "README.md").read_text()
    objective = spec.name.split("-")[1].rstrip("0123456789")
    for text in ("steps", "seed", "device", "commit", f"pretrain {objective} --"):
        assert text in card


def test_packaged_weights_are_small() -> None:
    folder = mini.WEIGHTS
    assert sum(path.stat().st_size for path in folder.glob("*/*")) < 28e6


def test_an_installation_without_weights_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: Loader
) -> None:
    monkeypatch.setattr("layerboard.mini.checkpoints.WEIGHTS", tmp_path)
    with pytest.raises(InputError, match="mini-mae has no weights: install the package again"):
        loader(find(["mini-mae"])[0])


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "preprocessor_config.json", "SHA256SUMS"]
)
def test_packaged_weights_are_those_of_their_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: Loader, name: str
) -> None:
    shutil.copytree(mini.WEIGHTS / "mini-resnet", tmp_path / "mini-resnet")
    monkeypatch.setattr("layerboard.mini.checkpoints.WEIGHTS", tmp_path)
    content = bytearray((tmp_path / "mini-resnet" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "mini-resnet" / name).write_bytes(content)
    with pytest.raises(InputError, match="mini-resnet holds files that have not the digests of its SHA"):
        loader(find(["mini-resnet"])[0])
    (tmp_path / "mini-resnet" / name).unlink()
    with pytest.raises(InputError, match=r"mini-resnet .*: install the package again"):
        loader(find(["mini-resnet"])[0])


def test_floor_is_standard_normal_and_independent(kept: Loader) -> None:
    floor = kept(find(["mini-random"])[0])
    seen = [*grids_of(floor, pixels(3, 64, 64)).values()]
    stacked = torch.stack(seen).flatten(1)
    assert len(stacked) == 11
    assert abs(stacked.mean()) < 0.01
    assert abs(stacked.std() - 1) < 0.01
    assert torch.corrcoef(stacked).fill_diagonal_(0).abs().max() < 0.04
    images = torch.cat([layer.flatten(1) for layer in seen], dim=1)
    assert torch.corrcoef(images).fill_diagonal_(0).abs().max() < 0.04


def test_floor_follows_the_image_and_not_its_place(kept: Loader) -> None:
    floor = kept(find(["mini-random"])[0])
    images = pixels(2, 64, 64)
    images = torch.cat([images, images.flip(0)])
    features = layers_of(floor, images, [Layer(4)])["4"]
    assert features.cls is not None
    assert torch.equal(features.grid[:2], features.grid[2:].flip(0))
    assert torch.equal(features.cls[0], features.cls[3])
    assert not torch.equal(features.cls[0], features.cls[1])


def test_raw_pixels_are_those_of_each_patch_and_of_the_image_shrunk_to_one(kept: Loader) -> None:
    backbone, images = kept(find(["mini-pixels"])[0]), pixels(2, 64, 48)
    features = layers_of(backbone, images, [Layer(1)])["1"]
    values = images.float() / 127.5 - 1  # in [-1, 1]
    patch = values[1, :, 16:24, 40:48]
    assert torch.allclose(features.grid[1, 2, 5], patch.flatten(), atol=1e-6)
    assert features.cls is not None
    small = values.unflatten(3, (8, 6)).unflatten(2, (8, 8)).mean((3, 5))  # [2 3 8 8], each of 8 x 6 pixels
    assert torch.allclose(features.cls, small.flatten(1), atol=1e-6)
