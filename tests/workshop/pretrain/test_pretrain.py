"""`python -m workshop.pretrain`: from the renderer to a backbone that the suite loads."""

import errno
import json
import pickle
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from layerboard.benchmark.engines.progress import Silent
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from tests.benchmark.runs import Said, command
from workshop.pretrain import images as rendering
from workshop.pretrain import pretrain as pretraining
from workshop.pretrain.__main__ import main
from workshop.pretrain.images import HELD_OUT, SEEDS, Wanted, rendered
from workshop.pretrain.options import OBJECTIVES, Pretraining
from workshop.pretrain.pretrain import commit, find_dtype, install, pretrain, tuned
from workshop.render.sample import sample_image
from workshop.render.seeds import ENTROPY, Namespace
from workshop.render.templates import TEMPLATES
from workshop.training.methods import METHODS

Capture = pytest.CaptureFixture[str]
WISH = Pretraining(
    objective="fs",
    steps=2,
    batch_size=4,
    images=24,
    image_size=32,
    seed=0,
    device="cpu",
    dtype="float32",
    output="out",
    cache="cache",
    workers=1,
)
OPTIONS = ("--batch-size", "4", "--images", "24", "--image-size", "32", "--device", "cpu", "--workers", "1")


def trained(capsys: Capture, *arguments: object) -> Said:
    """The training command in this process."""
    return command(capsys, *arguments, program=main)


@pytest.fixture(autouse=True)
def _small_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "KNOWN", len(TEMPLATES))
    monkeypatch.setattr(pretraining, "ASKED", 6)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rendered images of the small trainings; not to be changed."""
    place = tmp_path_factory.mktemp("cache")
    rendered(Wanted(0, 0, 24, 32), place, 1, Silent())
    rendered(Wanted(0, HELD_OUT, len(TEMPLATES) + 6, 32), place, 1, Silent())
    return place


def test_rendered_images_are_the_renderers(cache: Path) -> None:
    found = rendered(Wanted(0, 0, 24, 32), cache, 1, Silent())
    expected = sample_image(7, 7, (32, 32))
    assert np.array_equal(found.images[7], expected.pixels.transpose(2, 0, 1))
    assert found.captions[7] == expected.caption
    assert np.bincount(found.labels).tolist() == [1] * len(TEMPLATES)
    assert isinstance(found.images, np.memmap)


def test_an_interrupted_rendering_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "CHUNK", 5)
    numbers: list[int] = []

    def limited(number: int, class_index: int, size: tuple[int, int]) -> object:
        if len(numbers) == 8:
            numbers.append(-1)
            raise KeyboardInterrupt
        numbers.append(number)
        return sample_image(number, class_index, size)

    monkeypatch.setattr(rendering, "sample_image", limited)
    wanted = Wanted(0, 0, 12, 32)
    with pytest.raises(KeyboardInterrupt):
        rendered(wanted, tmp_path, 1, Silent())
    found = rendered(wanted, tmp_path, 1, Silent())
    assert numbers == [*range(8), -1, *range(5, 12)]
    assert len(found) == 12
    (folder,) = (tmp_path / "rendered").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["facts.json", "images.npy"]
    rendered(wanted, tmp_path, 1, Silent())
    assert len(numbers) == 16


def test_chunks_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    chunk = tmp_path / "chunk-00000.npz", range(3)
    render, wanted, sent = pickle.loads(pickle.dumps((rendering.render_chunk, Wanted(0, 0, 3, 32), chunk)))
    render(wanted, sent, Silent())
    assert [path.name for path in tmp_path.iterdir()] == ["chunk-00000.npz"]


def test_what_images_follow_from_is_in_their_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Wanted(0, 0, 12, 32)
    others = [replace(wanted, **{name: 17}) for name in ("seed", "first", "count", "side")]
    prints = {one.fingerprint for one in (wanted, *others)}
    monkeypatch.setattr(rendering, "MINI_VERSION", "other")
    assert len(prints | {wanted.fingerprint}) == 6


def test_training_images_share_no_seed_with_evaluation_sets_or_each_other() -> None:
    numbers = [seed * SEEDS + first + place for seed in (0, 1) for first in (0, HELD_OUT) for place in (0, 1)]
    states = {
        tuple(np.random.SeedSequence(ENTROPY, spawn_key=(int(Namespace.TRAINING), number)).generate_state(4))
        for number in numbers
    }
    assert len(states) == len(numbers)
    assert HELD_OUT < SEEDS


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"objective": "dino", "fraction": 0.1}, r"for methods that learn labels \(fs, resnet\)"),
        ({"pooling": "max"}, "--pooling takes cls or mean; found 'max'"),
        ({"device": "tpu"}, "there is no device 'tpu'|device 'tpu' is not supported"),
        ({"dtype": "float16"}, "--dtype takes auto, float32 or bfloat16; found 'float16'"),
        ({"image_size": 8}, "at least 16 pixels a side"),
        ({"image_size": 10**6}, "at most 2048; found seed 0, 24 images and 1000000 pixels"),
        ({"seed": -1}, "found seed -1"),
        ({"learning_rate": float("nan")}, "--learning-rate takes a finite number; found nan"),
        ({"learning_rate": -1.0}, "--learning-rate takes a number above 0 and at most 1000; found -1.0"),
        ({"learning_rate": 0.0}, "--learning-rate takes a number above 0 and at most 1000; found 0.0"),
        ({"fraction": float("inf")}, "--fraction takes a finite number; found inf"),
        ({"fraction": 0.0}, "must be above 0 and at most 1"),
        ({"no_skip": 13}, "there is no block 13"),
        ({"batch_size": 30}, "a batch of 30 cannot be drawn"),
    ],
)
def test_wrong_wishes_cost_no_rendering(changes: dict[str, object], text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=text):
        pretrain(replace(WISH, cache=tmp_path, output=tmp_path, **changes), Silent())  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_the_recipe_that_was_asked_for() -> None:
    chosen = tuned(replace(WISH, pooling="mean", no_skip=3, learning_rate=0.5))
    assert (chosen.recipe.pooling, chosen.recipe.no_skip) == ("mean", 3)
    assert chosen.recipe.optimisation.learning_rate == 0.5
    assert chosen.recipe.optimisation.weight_decay == METHODS[0].recipe.optimisation.weight_decay


@pytest.mark.parametrize(
    ("changes", "name", "options"),
    [
        ({}, "mini-fs", ""),
        ({"pooling": "mean"}, "mini-fs-mean", " --pooling mean"),
        ({"no_skip": 6}, "mini-fs-noskip6", " --no-skip 6"),
        ({"fraction": 0.1}, "mini-fs-10pct", " --fraction 0.1"),
        ({"learning_rate": 0.002}, "mini-fs", " --learning-rate 0.002"),
        ({"narrow": True}, "mini-fs64", " --narrow"),
        ({"narrow": True, "pooling": "mean"}, "mini-fs64-mean", " --narrow --pooling mean"),
    ],
)
def test_names_and_commands_of_variants(changes: dict[str, object], name: str, options: str) -> None:
    wish = replace(WISH, **changes)  # type: ignore[arg-type]
    assert wish.name == name
    assert wish.command == (
        "python -m workshop.pretrain fs --steps 2 --batch-size 4 --images 24 --image-size 32 --seed 0 "
        f"--device cpu --dtype float32{options}"
    )


def test_the_dtype_of_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    assert find_dtype("float32", cpu) is torch.float32
    assert find_dtype("bfloat16", cpu) is torch.bfloat16
    for fast, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(pretraining, "multiplies_bfloat16", lambda _, fast=fast: fast)
        assert find_dtype("auto", cpu) is dtype


@pytest.mark.slow
def test_the_command_makes_a_backbone_that_the_suite_takes(
    capsys: Capture, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    monkeypatch.setattr("layerboard.mini.checkpoints.WEIGHTS", package)
    said = trained(capsys, "fs", "--steps", "2", *OPTIONS, "-o", tmp_path, "--cache", cache, "--install")
    assert said.code == 0
    folder = tmp_path / "mini-fs"
    assert said.out.strip() == str(folder)
    assert "knn_cls" in json.loads((folder / "history.json").read_text())[-1]
    card = (folder / "README.md").read_text()
    assert "python -m workshop.pretrain fs --steps 2 --batch-size 4 --images 24" in card
    loss = json.loads((folder / "history.json").read_text())[-1]["loss"]
    for fact in (
        "| steps | 2 |",
        "| images seen | 8 (0.3 epochs of 24) |",
        "| seed | 0 |",
        f"| last loss | {loss:.4g} |",
    ):
        assert fact in card
    assert re.search(r"\| package \| layerboard \S+, commit (\w{40}|not known) \|", card)
    assert str(tmp_path) not in card
    installed = {path.name for path in (package / "mini-fs").iterdir()}
    assert installed == {"SHA256SUMS", *(p.name for p in folder.glob("*.*"))}
    backbone = load_backbone(find(["mini-fs"])[0], device=torch.device("cpu"), cache_dir=tmp_path)
    assert backbone.revision.startswith("sha256:")


@pytest.mark.slow
def test_a_second_call_trains_nothing(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the dtype that ``auto`` became, which card and command tell."""
    monkeypatch.setattr(pretraining, "multiplies_bfloat16", lambda _: True)
    wish = replace(WISH, dtype="auto", cache=cache, output=tmp_path)
    folder = pretrain(wish, Silent())
    weights, card = folder / "model.safetensors", (folder / "README.md").read_text()
    assert re.search(r"\| cpu, \d+ threads?, bfloat16 \|", card)
    assert "--dtype bfloat16" in card
    first = weights.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("workshop.training.train._update", lambda *_: pytest.fail("trained again"))
        pretrain(wish, Silent())
    assert weights.read_bytes() == first
    for other in (replace(wish, steps=3), replace(wish, dtype="float32")):
        with pytest.raises(InputError, match="is a checkpoint of another training"):
            pretrain(other, Silent())
    pretrain(replace(wish, steps=3, resume=False), Silent())
    assert weights.read_bytes() != first


def test_an_interruption_is_no_error(
    capsys: Capture, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pretraining, "train", interrupt)
    said = trained(capsys, "fs", *OPTIONS, "-o", tmp_path, "--cache", cache)
    assert said.code == 130
    assert said.lines("interrupted; run again to go on from the last checkpoint")


@pytest.mark.parametrize(
    "error", [RuntimeError("unexpected pos 704"), OSError(errno.ENOSPC, "No space left")]
)
def test_a_full_disk_is_one_sentence(
    capsys: Capture, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("layerboard.zoo.atomic.shutil.disk_usage", lambda _: usage._replace(free=100))
    monkeypatch.setattr("workshop.training.train.torch.save", full)
    said = trained(capsys, "fs", "--steps", "2", *OPTIONS, "-o", tmp_path, "--cache", cache)
    assert (said.code, len(said.lines("step 2: ")), len(said.err.splitlines())) == (2, 1, 2)
    assert said.lines("error: no space is left on the disk; free some and run again")
    assert not list(tmp_path.rglob(".partial-*"))


def test_an_output_that_cannot_be_written_costs_no_rendering(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = trained(capsys, "fs", *OPTIONS, "-o", tmp_path / "file", "--cache", tmp_path / "cache")
    assert "--output" in said.error
    assert "cannot be written to" in said.error
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be used: .*; choose another --cache"):
        rendered(Wanted(0, 0, 4, 32), tmp_path / "file", 1, Silent())


@pytest.mark.parametrize("name", ["images.npy", "facts.json"])
def test_damaged_images_are_not_trained_on(tmp_path: Path, name: str) -> None:
    rendered(Wanted(0, 0, 4, 32), tmp_path, 1, Silent())
    (path,) = tmp_path.rglob(name)
    content = path.read_bytes()
    place = content.index(b"[") + 1 if name == "facts.json" else len(content) // 2
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(InputError, match="is damaged; remove it and run again"):
        rendered(Wanted(0, 0, 4, 32), tmp_path, 1, Silent())


def test_a_package_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layerboard.mini.checkpoints.WEIGHTS", tmp_path / "missing")
    with pytest.raises(InputError, match=r"cannot be written: .*; install without --install"):
        install(tmp_path, "mini-fs")


def test_the_commit_is_read_from_the_checkouts_files(tmp_path: Path) -> None:
    assert commit(tmp_path) is None
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert commit(tmp_path) is None
    (git / "packed-refs").write_text("# pack-refs\n123 refs/heads/other\nabc refs/heads/main\n")
    assert commit(tmp_path) == "abc"
    (git / "refs" / "heads" / "main").write_text("def\n")
    assert commit(tmp_path) == "def"
    (git / "HEAD").write_text("0123\n")
    assert commit(tmp_path) == "0123"


def test_the_command_line_knows_all_objectives() -> None:
    assert list(OBJECTIVES) == [one.name for one in METHODS]


def test_which_devices_multiply_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, expected in (({"avx512_bf16": True}, True), ({"amx_bf16": False}, False), ({}, False)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda found=found: found, raising=False)
        assert pretraining.multiplies_bfloat16(torch.device("cpu")) is expected
    assert not pretraining.multiplies_bfloat16(torch.device("meta"))
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert not pretraining.multiplies_bfloat16(torch.device("cpu"))
