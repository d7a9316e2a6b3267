"""Random crops of the images of a k-NN bank: which part, how often mirrored, and only of training images."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.base import FileSample
from layerboard.tasks.framework.identity import identity
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.sources import IMAGES, CroppedSample, probed
from layerboard.zoo.view.views import ResizeCrop, Stretch
from tests.tasks.framework.test_sources import classification, labels

OMNIPROBE = find_protocol("omniprobe").config_for(IMAGES)
WIDTH, HEIGHT = 120, 80


@pytest.fixture(scope="module")
def positions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image whose red tells the column of a pixel, and its green the row."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    pixels[..., 0], pixels[..., 1] = np.arange(WIDTH), np.arange(HEIGHT)[:, None]
    path = tmp_path_factory.mktemp("crops") / "image.png"
    Image.fromarray(pixels).save(path)
    return path


def crop(path: Path, name: str) -> np.ndarray:
    return np.asarray(CroppedSample(FileSample(name, str(path)), (0.2, 1.0)).open()).astype(int)


def test_a_crop_is_a_part_of_the_image_or_its_mirror_image(positions: Path) -> None:
    parts = [crop(positions, str(number)) for number in range(400)]
    shares = np.array([part.shape[0] * part.shape[1] / (WIDTH * HEIGHT) for part in parts])
    assert shares.min() > 0.18
    assert shares.max() <= 1
    assert 0.2 < np.mean(shares > 0.5) < 0.6  # large ones fit less often
    ratios = np.array([part.shape[1] / part.shape[0] for part in parts])
    assert ((ratios > 0.72) & (ratios < 1.38)).all()
    steps = [{*np.diff(part[..., 0], axis=1).flat} for part in parts]
    assert all(step in ({1}, {-1}) for step in steps)
    assert sum(step == {-1} for step in steps) / len(steps) == pytest.approx(0.5, abs=0.1)
    assert all({*np.diff(part[..., 1], axis=0).flat} == {1} for part in parts)


def test_it_follows_from_the_name_alone(positions: Path, tmp_path: Path) -> None:
    first = crop(positions, "a")
    assert (first == crop(positions, "a")).all()
    assert crop(positions, "b").shape != first.shape
    elsewhere = tmp_path / "other.png"
    elsewhere.write_bytes(positions.read_bytes())
    assert (crop(elsewhere, "a") == first).all()


def test_the_bank_is_of_crops_as_squares_and_the_queries_are_not() -> None:
    data = classification(labels(60), labels(20))
    cropped, whole = probed(data, replace(OMNIPROBE, own_probe=2)), probed(data, IMAGES["standard"])
    assert cropped.rest is not None
    assert cropped.val is not None
    for source in (cropped.probe, cropped.rest):
        assert source.view == Stretch(side=224)
        assert all(isinstance(sample, CroppedSample) for sample in source.samples)
        assert all(sample.area == (0.2, 1.0) for sample in source.samples)
    assert cropped.val.view == ResizeCrop(short=256, crop=224)
    assert cropped.val.samples == data.val.samples
    assert identity(cropped.val) == identity(whole.val)
    assert identity(cropped.probe) != identity(
        probed(data, replace(OMNIPROBE, own_probe=2, crops=None)).probe
    )
    assert [sample.key for sample in cropped.images.train.samples] == [one.key for one in data.train.samples]
