"""A wrong file, mean, deviation, size, activation or interpolation is refused, by the features it gives."""

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache as once
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn
from transformers.activations import ACT2FN

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.features.weights import position_table
from layerboard.zoo.load import feature_fingerprint as fingerprints
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.feature_fingerprint import (
    TOLERANCE,
    VIEW,
    feature_fingerprint,
    probe_image,
    require_same_features,
    require_stored_features,
    stored_fingerprint,
)
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import CLIP, HALF, IMAGENET, UNIT, BackboneSpec, Interpolation
from layerboard.zoo.view.views import ResizeCrop, View, resized_part
from tests.zoo.conftest import CPU, Loader

PACKAGED = tuple(spec for spec in find(["mini-*"]) if not spec.is_floor)
TOYS = tuple(spec for spec in PACKAGED if spec.is_toy)
ACTIVATIONS = ("gelu", "quick_gelu", "gelu_pytorch_tanh", "relu", "silu")
FILTERS = ("NEAREST", "BOX", "BILINEAR", "HAMMING", "LANCZOS")
Fault = Callable[[random.Random, BackboneSpec, Loader], None]  # raises InputError


@pytest.mark.parametrize("spec", PACKAGED, ids=lambda spec: spec.name)
def test_packaged_backbones_have_their_stored_features(spec: BackboneSpec, kept: Loader) -> None:
    stored = stored_fingerprint(spec.name)
    assert stored is not None
    now = feature_fingerprint(kept(spec))
    require_same_features(now, stored)
    assert (now.backbone, now.sha256, now.revision) == (stored.backbone, stored.sha256, stored.revision)
    assert len(now.numbers) == 4 + 2 * spec.has_final
    assert {len(row) for row in now.numbers.values()} == {12}


@pytest.mark.parametrize("spec", TOYS[3:5], ids=lambda spec: spec.name)
def test_rounding_is_far_below_the_tolerance(
    spec: BackboneSpec, kept: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In double precision the numbers are the same to a thirtieth of what is tolerated."""
    exact = deepcopy(kept(spec))
    assert isinstance(exact, HookedBackbone)
    for part in exact.parts:
        part.double()
    exact.dtype, exact._scale, exact._shift = torch.float64, exact._scale.double(), exact._shift.double()
    monkeypatch.setattr(fingerprints, "TOLERANCE", TOLERANCE / 30)
    refuse(exact, spec)


def test_images_are_the_same_on_every_machine() -> None:
    images = [probe_image(number) for number in range(4)]
    assert [image.size for image in images] == [*fingerprints.SIZES]
    assert sha256(b"".join(image.tobytes() for image in images)).hexdigest()[:16] == "650e33cd885395f0"
    signs = fingerprints._signs((3, 5, 7)).flatten()
    assert signs.tolist()[:8] == [-1, 1, -1, -1, -1, 1, 1, -1]
    assert abs(fingerprints._signs((4, 65, 96)).double().mean()) < 0.02


def network(backbone: Backbone) -> nn.Module:
    assert isinstance(backbone, HookedBackbone)
    return backbone._network.body


def refuse(backbone: Backbone, spec: BackboneSpec, view: View = VIEW) -> None:
    """Raise InputError if the features are not those that are stored for the entry."""
    stored = stored_fingerprint(spec.name)
    assert stored is not None
    require_same_features(feature_fingerprint(backbone, view), stored)


def as_entry(spec: BackboneSpec, backbone: Backbone, **facts: object) -> Backbone:
    """The network of a loaded backbone under an entry that may be wrong."""
    assert isinstance(backbone, HookedBackbone)
    entry = replace(spec, **facts)  # type: ignore[arg-type]
    return HookedBackbone(entry, backbone._network, BackboneIdentity("", "", backbone.sha256), CPU)


def other_file(draw: random.Random, spec: BackboneSpec, kept: Loader) -> None:
    """Weights that were moved towards another network's, by one to a hundred percent of the way."""
    alike = [each for each in PACKAGED if (each.model_types, each.stages) == (spec.model_types, spec.stages)]
    twin = network(kept(draw.choice([each for each in alike if each != spec]))).state_dict()
    mine = network(kept(spec)).state_dict()
    share, before = draw.uniform(0.01, 1), {name: tensor.clone() for name, tensor in mine.items()}
    same = [name for name in mine if mine[name].ndim > 1 and name in twin]
    assert same
    try:
        for name in same:
            mine[name].lerp_(twin[name], share)
        refuse(kept(spec), spec)
    finally:
        for name, tensor in before.items():
            mine[name].copy_(tensor)


def other_colours(fact: str, least: float, most: float) -> Fault:
    """The mean or the deviation of another family, or one channel's moved by such a share of a deviation."""

    def fault(draw: random.Random, spec: BackboneSpec, kept: Loader) -> None:
        own = getattr(spec, fact)
        others = [getattr(each, fact) for each in (IMAGENET, HALF, CLIP, UNIT) if getattr(each, fact) != own]
        moved, channel = [*own], draw.randrange(3)
        moved[channel] += draw.choice((-1, 1)) * draw.uniform(least, most) * spec.std[channel]
        refuse(as_entry(spec, kept(spec), **{fact: draw.choice([*others, tuple(moved)])}), spec)

    fault.__name__ = f"other_{fact}"
    return fault


def other_size(draw: random.Random, spec: BackboneSpec, kept: Loader) -> None:
    """Another input size; or images that are shown larger or smaller in the right one."""
    if draw.random() < 0.5:
        side = spec.input_size + spec.patch_size * draw.choice((-2, -1, 1, 2, 3))
        return refuse(as_entry(spec, kept(spec), input_size=side), spec)
    view = ResizeCrop(draw.choice([*range(224, 250, 2), *range(262, 320, 4)]), 224)
    return refuse(kept(spec), spec, view)


def other_activation(draw: random.Random, spec: BackboneSpec, kept: Loader) -> None:
    """Another activation in all blocks."""
    backbone = kept(spec)
    named = {type(ACT2FN[name]): name for name in ACTIVATIONS}
    places = [
        (parent, name)
        for parent in network(backbone).modules()
        for name, child in parent.named_children()
        if type(child) in named
    ]
    assert places, spec.name
    own = {named[type(getattr(parent, name))] for parent, name in places}
    other = draw.choice([name for name in ACTIVATIONS if name not in own])
    before = [getattr(parent, name) for parent, name in places]
    try:
        for parent, name in places:
            setattr(parent, name, ACT2FN[other])
        refuse(backbone, spec)
    finally:
        for (parent, name), module in zip(places, before, strict=True):
            setattr(parent, name, module)


def other_interpolation(draw: random.Random, spec: BackboneSpec, kept: Loader) -> None:
    """Another rule for position embeddings, where there are any to fit; or another filter of images."""
    has_table = position_table(getattr(network(kept(spec)), "embeddings", None)) is not None
    if has_table and draw.random() < 0.5:
        rules: tuple[Interpolation, ...] = ("huggingface", "dino", "timm")
        rule = draw.choice([rule for rule in rules if rule != spec.interpolation])
        return refuse(_with_rule(spec, rule), spec)
    resize = partial(resized_part, resampling=Image.Resampling[draw.choice(FILTERS)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("layerboard.zoo.view.views.BICUBIC", resize)
        return refuse(kept(spec), spec)


@once
def _with_rule(spec: BackboneSpec, rule: Interpolation) -> Backbone:
    return load_backbone(replace(spec, interpolation=rule), device=CPU, cache_dir=Path())


FAULTS: tuple[Fault, ...] = (
    *(other_file, other_colours("mean", 0.01, 0.4), other_colours("std", 0.01, 0.5)),
    *(other_size, other_activation, other_interpolation),
)


def missed(trials: range, kept: Loader) -> list[str]:
    """Drawn faults of drawn backbones that were not refused."""
    found = []
    for trial in trials:
        draw = random.Random(trial)
        fault, spec = FAULTS[trial % len(FAULTS)], draw.choice(TOYS)
        try:
            fault(draw, spec, kept)
        except InputError:
            continue
        found.append(f"{trial}: {fault.__name__} of {spec.name}")
    return found


def test_drawn_faults_are_refused(kept: Loader) -> None:
    assert missed(range(12), kept) == []  # two of each kind


@pytest.mark.slow
def test_hundreds_of_drawn_faults_are_refused(kept: Loader) -> None:
    assert missed(range(12, 312), kept) == []
    for spec in TOYS:  # and what was changed is as it was
        refuse(kept(spec), spec)


def test_a_run_refuses_a_network_that_is_not_its_entrys(
    kept: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_COMPARED", set())
    first, second = kept(find(["mini-dino"])[0]), kept(find(["mini-moco"])[0])
    require_stored_features(first)
    wrong = as_entry(first.spec, second)
    with pytest.raises(InputError, match=r"of mini-dino are not those .* of at most 0.0001; its weights"):
        require_stored_features(wrong)
    require_stored_features(as_entry(first.spec, second, mean=HALF.mean))  # an entry of the user's own
    require_stored_features(as_entry(replace(first.spec, name="own"), second))


def test_a_fingerprint_is_written_as_it_is_read(kept: Loader, tmp_path: Path) -> None:
    now = feature_fingerprint(kept(find(["mini-resnet"])[0]))
    now.write(tmp_path / "mini-resnet.json")
    assert stored_fingerprint("mini-resnet", tmp_path) == now
    assert stored_fingerprint("mini-fs", tmp_path) is None
    assert len((tmp_path / "mini-resnet.json").read_text().splitlines()) == 9 + len(now.numbers)
    (tmp_path / "mini-fs.json").write_text("{}")
    with pytest.raises(InputError, match="which is malformed"):
        stored_fingerprint("mini-fs", tmp_path)
    with pytest.raises(InputError, match="of version 2, this is 1"):
        require_same_features(now, replace(now, version=2))
    numbers = {place: [float("nan")] * 12 for place in now.numbers}
    with pytest.raises(InputError, match="differ by inf of their norm"):
        require_same_features(replace(now, numbers=numbers), now)
