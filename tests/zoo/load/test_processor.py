"""Mean, standard deviation and size of images: in whichever file they are said, assumed, or refused."""

import json
import logging
from pathlib import Path

import pytest
import torch

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.infer import infer
from layerboard.zoo.spec import CLIP, HALF, IMAGENET, BackboneSpec, Normalisation
from tests.zoo.conftest import Loader, Small
from tests.zoo.reduced import grids_of, pixels

NAME = "preprocessor_config.json"
OWN = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7]}
OF_TIMM = {"mean": [0.1, 0.2, 0.3], "std": [0.5, 0.6, 0.7]}
SAID = ((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))
USUAL = (IMAGENET.mean, IMAGENET.std)
Files = dict[str, dict[str, object]]


@pytest.fixture
def folder(small: Small) -> Path:
    """A ResNet without a processor."""
    return small("resnet50").folder


def read(folder: Path, files: Files) -> BackboneSpec:
    """What is inferred of a folder with more in some of its files."""
    for name, content in files.items():
        path = folder / name
        before = json.loads(path.read_text()) if name == "config.json" else {}
        path.write_text(json.dumps(before | content), encoding="utf-8-sig")
    return infer(str(folder), None, None)


@pytest.mark.parametrize(
    ("files", "normalisation", "side"),
    [
        ({NAME: OWN | {"size": 32}}, SAID, 32),
        ({NAME: {"do_normalize": False, "size": {"shortest_edge": 96}}}, ((0.0,) * 3, (1.0,) * 3), 96),
        ({NAME: {"crop_size": {"height": 448, "width": 448}}}, USUAL, 224),
        ({"processor_config.json": {"image_processor": OWN}}, SAID, 224),
        ({"processor_config.json": {"processor_class": "A", "video_processor": OWN}}, SAID, 224),
        ({"processor_config.json": {"processor_class": "A"}, NAME: OWN}, SAID, 224),
        ({NAME: {"image_processor": OWN, "tokenizer": {}}}, SAID, 224),
        ({NAME: {"size": 64}, "open_clip_config.json": {"preprocess_cfg": OF_TIMM}}, SAID, 64),
        ({"config.json": {"pretrained_cfg": OF_TIMM}}, SAID, 224),
        *(({NAME: OWN | {key: False}}, SAID, 224) for key in ("do_flip_channel_order", "do_grayscale")),
    ],
)
def test_what_a_file_says_of_images_is_never_assumed(
    files: Files, normalisation: object, side: int, folder: Path
) -> None:
    spec = read(folder, files)
    assert ((spec.mean, spec.std), spec.input_size) == (normalisation, side)


BESIDE = {"video_preprocessor_config.json": {"video_processor": OWN | {"image_std": 1.0}}}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({NAME: OWN} | BESIDE, r"beside it mean .* remove the file that is not the network's"),
        *(
            ({NAME: {key: True}}, f"asks for {key} .True., but images are given as RGB")
            for key in ("do_flip_channel_order", "do_grayscale", "rescale_offset")
        ),
        ({NAME: {"image_std": [0, 1, 1]}}, r"'image_std' of .* 0.001 to 10, not \[0.0, 1.0, 1.0\]"),
        ({NAME: {"image_mean": [float("nan")] * 3}}, "give an 'image_mean' of three numbers from -2 to 3"),
        (
            {NAME: {"image_mean": [0.5]}},
            r"no processor of images .*length >= 3, found \[0.5\], at image_mean",
        ),
        ({NAME: {"rescale_factor": 0}}, "should give a number above 0 as 'rescale_factor', not 0"),
    ],
)
def test_what_cannot_be_done_to_images_is_refused(files: Files, words: str, folder: Path) -> None:
    with pytest.raises(InputError, match=words):
        read(folder, files)


@pytest.mark.parametrize(
    ("name", "normalisation"), [("clip-b16", CLIP), ("beit-b16", HALF), ("mae-b16", IMAGENET)]
)
def test_assumed_normalisation_is_told(
    name: str, normalisation: Normalisation, small: Small, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="layerboard.zoo.load.processor"):
        spec = infer(str(small(name).folder), None, None)
    assert (spec.mean, spec.std) == (normalisation.mean, normalisation.std)
    assert "has no preprocessor_config.json: mean" in caplog.text


def test_keys_that_are_not_read_are_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    read(folder, {NAME: {"image_maen": [0.4] * 3, "image_std": [1] * 3, "do_rescal": False, "std": 3}})
    for words in (
        "has 'image_maen', which is not read; did you mean 'image_mean'?",
        "has 'do_rescal', which is not read; did you mean 'do_rescale'?",
        "has no 'image_mean': what is usual for its model type is assumed",
    ):
        assert words in caplog.text
    caplog.clear()
    read(folder, {NAME: OWN | {"do_resize": True, "more": 3}})
    assert caplog.text == ""


@pytest.mark.parametrize(
    "values",
    [
        {"do_rescale": False, "image_mean": [127.5, 51, 25.5], "image_std": [255, 51, 25.5]},
        {"rescale_factor": 1 / 127.5, "image_mean": [1, 0.4, 0.2], "image_std": [2, 0.4, 0.2]},
    ],
)
def test_pixels_of_other_ranges_are_normalised_alike(
    values: dict[str, object], folder: Path, loader: Loader
) -> None:
    usual: dict[str, object] = {"image_mean": [0.5, 0.2, 0.1], "image_std": [1, 0.2, 0.1]}
    shown = [grids_of(loader(read(folder, {NAME: each})), pixels(1, 64, 64))["0"] for each in (usual, values)]
    torch.testing.assert_close(*shown, rtol=1e-4, atol=1e-4)
