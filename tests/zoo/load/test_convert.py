"""Checkpoints as their authors publish them: every layer against the original architecture in plain torch."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.spec.origin import TRANSFORMERS
from tests.zoo.conftest import Loader, Small
from tests.zoo.published import LAYOUTS, publish
from tests.zoo.reduced import Published, layers_of, normalised, pixels

FULL = ("timm", "dino", "moco-b16", "mae", "beit", "clip")
ENTRIES = ("dino-s8-300ep", "ibot-b16")
"""In files that are like a layout's."""


def rows(features: LayerFeatures) -> Tensor:
    """Tokens [batch tokens dim] with the class token first."""
    grid = features.grid.flatten(1, 2)
    return grid if features.cls is None else torch.cat([features.cls[:, None], grid], dim=1)


def layers(backbone: Backbone, images: Tensor) -> list[Tensor]:
    """Tokens of every layer."""
    return [rows(features) for features in layers_of(backbone, images).values()]


def expected(published: Published, images: Tensor) -> list[Tensor]:
    """The same of the original, with all its prefix tokens."""
    return published.reference(normalised(published.spec, images))


def agree(backbone: Backbone, original: list[Tensor], images: Tensor, rtol: float = 1e-4) -> None:
    """Every layer of a backbone is that of the original, of whose prefix tokens the class token is read."""
    spec, found = backbone.spec, layers(backbone, images)
    assert len(found) == len(original) == len(spec.layers)
    for ours, theirs in zip(found, original, strict=True):
        tokens = theirs.flatten(2).transpose(1, 2) if theirs.ndim == 4 else theirs
        kept = torch.cat([tokens[:, : spec.has_cls], tokens[:, spec.prefix_tokens :]], dim=1)
        torch.testing.assert_close(ours, kept, rtol=rtol, atol=1e-4)


@pytest.mark.parametrize("name", [*LAYOUTS, *ENTRIES])
def test_every_layer_is_that_of_the_original(name: str, tmp_path: Path, small: Small, loader: Loader) -> None:
    published = publish(name, tmp_path) if name in LAYOUTS else small(name)
    images = pixels(2, published.spec.input_size, published.spec.input_size)
    agree(loader(published.spec), expected(published, images), images)


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
def test_every_layer_at_full_size(
    name: str, tmp_path: Path, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ViT-B/16 at 224 px; without the digest of the file, which would take as long as all the rest."""
    monkeypatch.setattr("layerboard.zoo.load.checkpoint.files_digest", lambda _: "sha256:left-out")
    published = publish(name, tmp_path, full=True)
    images = pixels(1, 224, 224)
    agree(loader(published.spec), expected(published, images), images, rtol=0)


OTHER_SIZES = ("dino", "deit-distilled", "dinov2", "beit-tuned", "resnet-basic", "franca", "capi", "pe-core")


@pytest.mark.parametrize("name", [*OTHER_SIZES, "pe-spatial", "pe-scaled"])
@pytest.mark.parametrize("cells", [(5, 7), (1, 1), (1, 5), (4, 1)])
def test_images_of_other_sizes(name: str, cells: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    """Of one row or column, too."""
    published = publish(name, tmp_path)
    patch = published.spec.patch_size
    images = pixels(1, cells[0] * patch, cells[1] * patch)
    spec = replace(published.spec, interpolation="huggingface")  # the reference's rule
    agree(loader(spec), expected(published, images), images)


def test_the_layout_is_recognised_whatever_the_entry_says(tmp_path: Path, loader: Loader) -> None:
    """An entry of the Hub's format takes the authors' file, alone or as the weights of a directory."""
    published = publish("mae", tmp_path)
    path = Path(published.spec.repository)
    images = pixels(1, published.spec.input_size, published.spec.input_size)
    from_file = layers(loader(replace(published.spec, origin=TRANSFORMERS)), images)
    path.rename(tmp_path / "pytorch_model.bin")
    from_directory = layers(loader(replace(published.spec, repository=str(tmp_path))), images)
    assert all(torch.equal(one, two) for one, two in zip(from_file, from_directory, strict=True))


def test_files_of_old_versions_of_torch(tmp_path: Path, loader: Loader) -> None:
    published = publish("dino", tmp_path)
    torch.save(published.tensors, published.spec.repository, _use_new_zipfile_serialization=False)
    images = pixels(1, published.spec.input_size, published.spec.input_size)
    agree(loader(published.spec), expected(published, images), images)


def test_weights_are_not_copied(tmp_path: Path, loader: Loader) -> None:
    """Anonymous memory, which mapped files are not, hardly grows when a checkpoint is loaded."""
    status = Path("/proc/self/status")
    if not status.is_file():
        pytest.skip("only Linux tells the memory of a process this way")

    def anonymous() -> int:
        line = next(line for line in status.read_text().splitlines() if line.startswith("RssAnon"))
        return 1024 * int(line.split()[1])

    published = publish("dino-training", tmp_path, full=True)
    size = sum(tensor.nbytes for tensor in published.tensors.values())
    before = anonymous()
    backbone = loader(published.spec)
    assert anonymous() - before < size / 2
    assert backbone.revision.startswith("sha256:")
