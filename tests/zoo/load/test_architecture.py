"""Every layer of a checkpoint in its real layout, against the original architecture in plain torch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import Layer
from tests.zoo.conftest import Loader
from tests.zoo.reduced import Reduced, normalised, pixels

NAMES = (
    *("fs-b16", "clip-b16", "dino-s16", "moco-b16", "mae-b16", "beit-b16", "resnet50"),
    *("dino-s8-300ep", "moco-s16", "ibot-b16", "dino-resnet50", "moco-resnet50"),
)


def flat(features: LayerFeatures) -> Tensor:
    """Tokens [batch tokens dim] with the class token first, as a copy."""
    grid = features.grid.flatten(1, 2)
    return grid.clone() if features.cls is None else torch.cat([features.cls[:, None], grid], dim=1)


def rows_of(reference: Tensor) -> Tensor:
    return reference.flatten(2).transpose(1, 2) if reference.ndim == 4 else reference


@pytest.mark.parametrize("name", NAMES)
def test_every_layer_is_that_of_the_original(
    name: str, small: Callable[[str], Reduced], loader: Loader
) -> None:
    reduced = small(name)
    images = pixels(2, reduced.spec.input_size, reduced.spec.input_size)
    expected = reduced.reference(normalised(reduced.spec, images))
    seen: list[tuple[Layer, Tensor]] = []
    loader(reduced.spec).visit(images, lambda features: seen.append((features.layer, flat(features))))
    assert tuple(layer for layer, _ in seen) == reduced.spec.layers
    assert len(expected) == len(seen)
    for (layer, found), reference in zip(seen, expected, strict=True):
        torch.testing.assert_close(
            found, rows_of(reference), rtol=1e-4, atol=1e-4, msg=f"layer {layer} differs"
        )
