"""What a backbone computes on fixed images, bit by bit, which tells networks apart whatever they hold."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from layerboard.zoo.features import LayerFeatures, Shown
from layerboard.zoo.features.backbone import Backbone


def probe(backbone: Backbone, between: Callable[[], object] = lambda: None) -> bytes:
    """Digest of all layers of two batches, of which the second has another size if the backbone takes one.

    They are computed in its number format, by one thread and with one seed, so that they repeat. ``between``
    is called after each batch.
    """
    spec, digest = backbone.spec, hashlib.sha256()
    side, more = spec.input_size, 0 if spec.fixed_size else spec.patch_size

    def add(shown: Shown) -> None:
        assert isinstance(shown, LayerFeatures)
        digest.update(str(shown.layer).encode())
        for part in (shown.cls, shown.grid, shown.prefix):
            digest.update(b"none" if part is None else tensor_bytes(part))

    with _repeatable():
        for count, height, width in ((2, side, side), (3, side + more, side + 2 * more)):
            backbone.visit(_pixels(count, height, width), add)
            between()
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


@contextmanager
def _repeatable() -> Iterator[None]:
    """Context in which torch computes with one thread, as sums depend on their number, and from one seed."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
