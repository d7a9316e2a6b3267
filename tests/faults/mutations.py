"""Files that decide numbers, changed one at a time: another number needs another digest."""

import hashlib
import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from tests import fakes
from tests.benchmark.runs import VOLATILE, run
from tests.faults.broken_bytes import WAYS, Way
from tests.faults.trials import Effort, Trial, problem_of
from tests.zoo.load.test_digests import OWN
from tests.zoo.load.test_infer import save
from tests.zoo.published import publish

Victim = tuple[Path, Callable[[], tuple[object, object]]]
"""A file that decides a number, and what gets a digest and the number."""


def digit(content: bytes, draw: random.Random) -> bytes:
    """Change one digit of a text."""
    if not (places := [place for place, byte in enumerate(content) if 48 <= byte <= 57]):
        return content
    place = draw.choice(places)
    other = 48 + (content[place] - 48 + draw.randint(1, 9)) % 10
    return content[:place] + bytes([other]) + content[place + 1 :]


def misspell(content: bytes, draw: random.Random) -> bytes:
    """Exchange two letters of a word."""
    if not (words := list(re.finditer(rb"[A-Za-z]{4,}", content))):
        return content
    place = draw.choice(words).start() + 1
    return content[:place] + content[place : place + 2][::-1] + content[place + 2 :]


def lines(content: bytes, draw: random.Random) -> bytes:
    """Leave a line out, write one twice, or exchange two."""
    every = content.splitlines(keepends=True)
    if len(every) > 1:
        first, second = draw.sample(range(len(every)), 2)
        way = draw.randrange(3)
        if way == 0:
            del every[first]
        elif way == 1:
            every.insert(second, every[first])
        else:
            every[first], every[second] = every[second], every[first]
    return b"".join(every)


TEXT_WAYS: tuple[Way, ...] = (digit, digit, misspell, lines, lines)


def _shown(name: str | Callable[[], object], cache: Path) -> tuple[object, object]:
    """Identity and features of a backbone."""
    (spec,) = find([name]) if isinstance(name, str) else (name(),)
    backbone = load_backbone(spec, device=torch.device("cpu"), cache_dir=cache)  # type: ignore[arg-type]
    side = backbone.spec.input_size
    pixels = (torch.arange(3 * side * side) % 251).to(torch.uint8).view(1, 3, side, side)
    summed = hashlib.sha256()

    def visitor(features: object) -> None:
        assert isinstance(features, LayerFeatures)
        summed.update(features.grid.float().numpy().tobytes())

    backbone.visit(pixels, visitor)
    return (backbone.revision, backbone.fingerprint), summed.hexdigest()


def directories(root: Path) -> Iterator[Victim]:
    """Weights, configuration and preprocessing of directories."""
    for name in ("ViTModel", "Dinov2Model"):
        save(place := root / name, name)
        (place / "preprocessor_config.json").write_text(
            '{"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4], "do_rescale": true, "size": 56}'
        )
        for file in ("model.safetensors", "config.json", "preprocessor_config.json"):
            yield place / file, partial(_shown, str(place), root)


def authors_files(root: Path) -> Iterator[Victim]:
    """Files of authors and of trainings."""
    for name in ("timm", "dino", "dino-training", "moco", "resnet"):
        spec = publish(name, root / name).spec
        yield Path(spec.repository), partial(_shown, lambda spec=spec: spec, root)


def onnx_files(root: Path) -> Iterator[Victim]:
    """A file with tensors inside, and two with tensors elsewhere."""
    for place in ("", "weights.bin", "net.onnx.data"):
        folder = root / (place or "inside")
        folder.mkdir(parents=True)
        weight = np.random.default_rng(0).normal(size=(8, 3, 8, 8)).astype(np.float32)
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("Conv", ["x", "w"], ["y"], strides=[8, 8])],
            "net",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 3, 32, 32])],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 8, 4, 4])],
            [numpy_helper.from_array(weight, "w")],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        options = {"save_as_external_data": True, "location": place, "size_threshold": 0} if place else {}
        onnx.save(model, folder / "net.onnx", **options)
        look = partial(_shown, f"onnx:{folder / 'net.onnx'}", root)
        yield folder / "net.onnx", look
        if place:
            yield folder / place, look


def objects(root: Path) -> Iterator[Victim]:
    """The file of a Python object."""
    root.mkdir(parents=True)
    (root / "own_mutated.py").write_text(OWN)

    def look() -> tuple[object, object]:
        from layerboard.zoo.own.module import objects as own

        own._made_by.cache_clear()
        sys.modules.pop("own_mutated", None)
        for cached in root.rglob("*.pyc"):
            cached.unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(root)
            (spec,) = find(["own_mutated:Own"])
            backbone = load_backbone(spec, device=torch.device("cpu"), cache_dir=root)
        return backbone.fingerprint, (root / "own_mutated.py").read_bytes()

    yield root / "own_mutated.py", look


def _numbers(place: Path, task: str, **options: object) -> object:
    records = run(place, ["raw-pixels"], task, layers="all", fails=True, **options)
    kept = records.drop(columns=[*VOLATILE, "data"], errors="ignore")
    return sorted(map(repr, kept.values.tolist())), records.attrs["failures"]


def _fresh(root: Path, task: str, **options: object) -> tuple[object, object]:
    """Numbers with what earlier runs have left as the digest, and without it as the number."""
    shutil.rmtree(root / "fresh", ignore_errors=True)
    shutil.copytree(root / "kept", root / "used", dirs_exist_ok=True)
    fresh = _numbers(root / "fresh", task, **options)
    return _numbers(root / "used", task, **options), fresh


def own_images(root: Path) -> Iterator[Victim]:
    """Images, labels, groups and splits."""
    fakes.write_fake_class_folders(root / "photos", classes=2, images=6, size=(24, 20))
    files = sorted(path.relative_to(root / "photos") for path in (root / "photos").rglob("*.JPEG"))
    rows = [f"{file.as_posix()},{file.parent},{('train', 'val')[n % 2]}\n" for n, file in enumerate(files)]
    (root / "labels.csv").write_text("".join(["file,label,split\n", *rows]))
    rows = [f"{file.as_posix()},g{n}\n" for n, file in enumerate(files)]
    (root / "groups.csv").write_text("".join(["file,group\n", *rows]))
    options = {"images": root / "photos", "labels": root / "labels.csv", "groups": root / "groups.csv"}
    _numbers(root / "kept", "knn", **options)
    look = partial(_fresh, root, "knn", **options)
    for path in (*(root / "photos" / file for file in files[:4]), root / "labels.csv", root / "groups.csv"):
        yield path, look


def masks(root: Path) -> Iterator[Victim]:
    """Masks and frames of videos."""
    fakes.write_fake_davis(root / "data")
    _numbers(root / "kept", "davis", data=root / "data")
    look = partial(_fresh, root, "davis", data=root / "data")
    paths = [path for path in sorted((root / "data").rglob("*")) if path.suffix in (".png", ".jpg", ".txt")]
    for path in paths:
        yield path, look


KINDS: dict[str, tuple[Callable[[Path], Iterator[Victim]], int]] = {
    "directories of weights": (directories, 34),
    "files of authors": (authors_files, 20),
    "ONNX files": (onnx_files, 20),
    "Python objects": (objects, 4),
    "images, labels, groups, splits": (own_images, 16),
    "masks and frames": (masks, 4),
}
"""Files by kind, and their shares of a hundred mutations."""


def mutate(root: Path, effort: Effort) -> Iterator[Trial]:
    """Change files of each kind, ten times as many as damages of a kind, and get digest and number again.

    What is wanted: soon a sentence, another digest, or the same number.
    """
    draw = effort.draw()
    for number, (kind, (write, share)) in enumerate(KINDS.items()):
        victims = list(write(root / str(number)))
        for _ in range(max(1, 10 * effort.times * share // 100)):
            path, look = draw.choice(victims)
            is_text = path.suffix in (".json", ".csv", ".txt", ".py", "")
            way = draw.choice(TEXT_WAYS if is_text and draw.random() < 0.7 else WAYS)
            if path.suffix == ".py":  # which any change but of a digit breaks or leaves alone
                way = digit
            before, content = look(), path.read_bytes()
            path.write_bytes(way(content, draw))
            looked: list[tuple[object, object]] = []
            problem = problem_of(lambda look=look, looked=looked: looked.append(look()))
            if any(digest == before[0] and value != before[1] for digest, value in looked):
                problem = "another number under the same digest"
            yield Trial(f"mutated {kind}", f"{way.__name__} {path.relative_to(root)}", problem)
            path.write_bytes(content)
