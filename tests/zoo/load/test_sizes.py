"""A checkpoint of another size of its family gives one sentence that names what was expected and found."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.config import check_facts, read_network
from layerboard.zoo.load.network import check_count
from layerboard.zoo.registry.find import all_specs, find
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.spec.origin import ORIGINAL, TRANSFORMERS
from tests.zoo.conftest import Loader
from tests.zoo.hub_models import of
from tests.zoo.reduced import reduce


def described(spec: BackboneSpec, **options: object) -> BackboneSpec:
    """What the configuration of an entry's repository says, with other options."""
    values = json.loads(of(spec)[1].to_json_string(use_diff=False)) | options
    return read_network(values, Path("config.json"))[2]


def kind(spec: BackboneSpec) -> tuple[str, str, tuple[str, ...], bool]:
    """What the sizes of a family share: those of one kind are told apart by their numbers alone."""
    return spec.family, spec.origin.name, spec.model_types, spec.heads is None


def pairs() -> Iterator[tuple[str, str]]:
    """The smallest and the largest network of each kind."""
    loaded = [spec for spec in all_specs() if spec.origin in (TRANSFORMERS, ORIGINAL)]
    for _, group in groupby(sorted(loaded, key=kind), key=kind):
        every = sorted(group, key=lambda spec: (spec.width, spec.depth, spec.parameters or 0))
        if every[0].stages != every[-1].stages:
            yield every[0].name, every[-1].name


@pytest.mark.parametrize(("given", "asked"), [*pairs()])
def test_another_size(given: str, asked: str, tmp_path: Path, loader: Loader) -> None:
    found, (said,) = reduce(find([given])[0], tmp_path).spec, find([asked])
    with pytest.raises(InputError) as caught:
        loader(replace(said, repository=found.repository, revision=None))
    message = str(caught.value)
    assert message.startswith(f"{asked}: the checkpoint {found.repository} d")
    assert message.endswith(".")
    assert "\n" not in message
    if len(said.stages) > 1:
        numbers = [[(s.blocks, s.width, s.stride) for s in one.stages] for one in (found, said)]
        assert f"stages (blocks, width, stride): {numbers[0]}, not {numbers[1]}" in message
    elif "does not fit" in message:  # The width cannot even be split into the heads.
        assert f"a width of {found.width} " in message
        assert f" heads of the entry, whose width is {said.width}" in message
    else:
        assert f"width: {found.width}, not {said.width}" in message


def test_which_families_have_one_size() -> None:
    asked = {find([name])[0].family for pair in pairs() for name in pair}
    loaded = {spec.family for spec in all_specs() if spec.origin in (TRANSFORMERS, ORIGINAL)}
    assert loaded - asked == {"CAPI", "RADIO"}


def test_a_gated_network_of_the_same_numbers(tmp_path: Path, loader: Loader) -> None:
    """DINOv3's S+ has the numbers of S, but for its gates, which make half as many weights again."""
    (plain, gated) = find(["dinov3-s16", "dinov3-s16plus"])
    reduced = reduce(gated, tmp_path).spec
    loader(reduced)
    count = 3 * 24 * 96
    with pytest.raises(InputError, match=rf"differs from the entry: weights: [0-9,]+, not {count:,}\."):
        loader(replace(reduced, parameters=count))
    assert gated.parameters is not None
    with pytest.raises(InputError, match="weights: 28,692,864, not 21,596,544"):
        check_count(plain, gated.parameters)
    assert plain.parameters is not None
    check_count(plain, round(1.09 * plain.parameters))


FULL_SIZE: tuple[tuple[str, str, dict[str, object], str], ...] = (
    ("franca-b14-in21k", "dinov2-b14", {}, "MLP: 2048, not 3072; a gated MLP: True, not False"),
    ("dinov2-b14", "franca-b14-in21k", {}, "MLP: 3072, not 2048; a gated MLP: False, not True"),
    ("dinov3-s16plus", "dinov3-s16", {}, "a gated MLP: True, not False"),
    ("franca-b14-in21k-224", "franca-b14-in21k", {}, r"training images: 224, not 518\."),
    ("franca-l14-laion600m", "franca-l14-laion600m-224", {}, r"training images: 518, not 224\."),
    ("aimv2-l14", "aimv2-l14", {"image_size": 336}, r"training images: 336, not 224\."),
    ("aimv2-l14", "aimv2-l14", {"is_native": True}, r"training images: any, not 224\."),
    ("sam-b16", "sam-b16", {"image_size": 512}, r"training images: 512, not 1024\."),
    ("swin-b", "swin-b", {"image_size": 384}, r"training images: 384, not 224\."),
)
"""What files describe, options of theirs that were changed, and what the entry that is asked for has."""


@pytest.mark.parametrize(("given", "asked", "option", "words"), FULL_SIZE)
def test_what_a_file_describes_is_that_of_its_entry_alone(
    given: str, asked: str, option: dict[str, object], words: str
) -> None:
    (own,), (said,) = find([given]), find([asked])
    check_facts(own, described(own))
    with pytest.raises(InputError, match=f"differs from the entry: .*{words}"):
        check_facts(said, described(own, **option))


@pytest.mark.parametrize(("given", "asked"), [("vjepa2-g16-384", "vjepa2-g16"), ("siglip-l16", "siglip-b16")])
def test_a_network_for_another_size_of_images(given: str, asked: str, tmp_path: Path, loader: Loader) -> None:
    """Told by what it was trained at, whatever ``--input-size`` says."""
    reduced = reduce(find([given])[0], tmp_path).spec
    (said,) = find([asked])
    with pytest.raises(InputError, match=f"images: {reduced.input_size}, not {said.trained_size}"):
        loader(replace(reduced, trained_size=said.trained_size))
    loader(replace(reduced, input_size=2 * reduced.input_size))
