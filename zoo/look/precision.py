"""What devices compute in: full float32 where asked for, bfloat16 where it is fast."""

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
    """Float32 products and convolutions keep their mantissa inside, where some GPUs shorten it (TF32).

    The process's settings are put back after.
    """
    settings = _settings()
    before = [getattr(holder, name) for holder, name, _ in settings]
    for holder, name, value in settings:
        setattr(holder, name, value)
    try:
        yield
    finally:
        for (holder, name, _), value in zip(settings, before, strict=True):
            setattr(holder, name, value)


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products of bfloat16, which make training about twice as fast.

    Asked are CUDA devices and x86 processors (AVX-512 BF16, AMX); an older torch knows of no processor's.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(bool(capabilities.get(name)) for name in ("avx512_bf16", "amx_bf16"))
