"""Full float32 on GPUs that would otherwise shorten the mantissa (TF32)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def _settings() -> tuple[tuple[object, str, object], ...]:
    """(holder, attribute, value) of what makes products and convolutions exact; torch 2.9 renamed them."""
    matmul, conv = torch.backends.cuda.matmul, getattr(torch.backends.cudnn, "conv", None)
    if conv is not None:
        return (matmul, "fp32_precision", "ieee"), (conv, "fp32_precision", "ieee")
    return (matmul, "allow_tf32", False), (torch.backends.cudnn, "allow_tf32", False)


@contextmanager
def exact_float32() -> Iterator[None]:
    """Float32 products and convolutions in float32 inside; the process's settings are put back after."""
    settings = _settings()
    before = [getattr(holder, name) for holder, name, _ in settings]
    for holder, name, value in settings:
        setattr(holder, name, value)
    try:
        yield
    finally:
        for (holder, name, _), value in zip(settings, before, strict=True):
            setattr(holder, name, value)
