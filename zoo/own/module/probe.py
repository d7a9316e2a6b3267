"""What a backbone computes on fixed images: its bits, and whether features of an image are its own."""

import hashlib

import torch
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures, Shown, Visitable

# Tolerances, as a share of the length of an image's features at a layer. Batches of one size run the same
# operations on each image; those of another size may run others, whose rounding grows from layer to layer.
SAME_SIZE = 1e-5
OTHER_SIZE = 0.05


def require_own_features(backbone: Visitable, name: str = "") -> None:
    """Raise InputError unless features of an image depend on nothing but the image.

    It is shown beside a dark image, beside a bright one, and alone. ``name`` stands for the backbone in the
    sentence.
    """
    side = backbone.spec.input_size
    draw = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (3, side, side), dtype=torch.uint8, generator=draw)
    dark = image // 50  # not of one colour, which some networks divide by its deviation
    batches = [image, dark], [image, 255 - dark], [image]
    beside_dark, beside_bright, alone = (_first_features(backbone, torch.stack(batch)) for batch in batches)
    for layer, features in beside_dark.items():
        for other, tolerance in ((beside_bright[layer], SAME_SIZE), (alone[layer], OTHER_SIZE)):
            # as a share of the length of the first; infinite numbers are 0
            first, second = (each.detach().double().nan_to_num(0, 0, 0) for each in (features, other))
            share = float((first - second).norm() / first.norm().clamp_min(1e-30))
            if share > max(tolerance, torch.finfo(features.dtype).eps):
                raise InputError(
                    f"{name or backbone.spec.name}: the features of an image change by {share:.2g} of their "
                    f"length at layer {layer} with the images beside it, such as by BatchNorm on statistics "
                    "of the batch, or by chance, such as by dropout; give the network in evaluation mode, or "
                    "a file quantised with fixed ranges or for batches of one image"
                )


def _first_features(backbone: Visitable, pixels: Tensor) -> dict[str, Tensor]:
    """All numbers of each layer of the first of some images, by the name of the layer."""
    numbers: dict[str, Tensor] = {}

    def keep(shown: Shown) -> None:
        assert isinstance(shown, LayerFeatures)
        parts = (part[0].flatten() for part in (shown.cls, shown.grid, shown.prefix) if part is not None)
        numbers[str(shown.layer)] = torch.cat([*parts])

    backbone.visit(pixels, keep)
    return numbers


def probe(backbone: Visitable) -> bytes:
    """Digest of all layers of two batches, of which the second has another size if the backbone takes one.

    They are computed in its number format, by one thread and with one seed, so that they repeat.
    """
    spec, digest = backbone.spec, hashlib.sha256()
    side, more = spec.input_size, 0 if spec.fixed_size else spec.patch_size

    def add(shown: Shown) -> None:
        assert isinstance(shown, LayerFeatures)
        digest.update(str(shown.layer).encode())
        for part in (shown.cls, shown.grid, shown.prefix):
            digest.update(b"none" if part is None else tensor_bytes(part))

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(0)
        torch.set_num_threads(1)  # on which sums depend
        try:
            for count, height, width in ((2, side, side), (3, side + more, side + 2 * more)):
                backbone.visit(_pixels(count, height, width), add)
        finally:
            torch.set_num_threads(threads)
    return digest.digest()


def _pixels(count: int, height: int, width: int) -> Tensor:
    """Noise, uint8 [count 3 height width], of which each second image is bright, the others dark."""
    draw = torch.Generator().manual_seed(width)
    dark = torch.randint(0, 128, (count, 3, height, width), dtype=torch.uint8, generator=draw)
    dark[1::2] += 128
    return dark


def tensor_bytes(tensor: Tensor) -> bytes:
    """Type, shape and content of a tensor."""
    plain = tensor.detach()
    plain = plain.to_dense() if plain.layout != torch.strided else plain
    facts = f"{tensor.dtype} {tuple(tensor.shape)}".encode()
    if plain.is_meta:
        return facts
    plain = plain.dequantize() if plain.is_quantized else plain.resolve_conj().resolve_neg()
    return facts + plain.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
