"""Digest of a network of somebody's own: its weights, its settings and the code of its classes."""

import hashlib
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType

import torch
from torch import nn

# Attributes of a module that are settings; others are weights, modules, or nothing that can be compared.
PLAIN = (bool, int, float, complex, str, bytes, type(None))


def digest_of(net: nn.Module, *facts: object) -> str:
    """``sha256:`` and 16 digits that change whenever features would, as far as the network itself tells.

    Functions that its classes call are not followed, nor are settings that are no plain numbers or words.
    """
    combined = hashlib.sha256()
    for fact in (*facts, *_described(net)):
        combined.update(repr(fact).encode())
    for name, tensor in (*net.named_parameters(), *net.named_buffers()):
        combined.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
        combined.update(flat.numpy().data)
    return f"sha256:{combined.hexdigest()[:16]}"


def _described(net: nn.Module) -> Iterator[object]:
    """Name, class and settings of each module, and the code of each class that is not torch's."""
    kinds: dict[str, type] = {}
    for path, module in net.named_modules():
        settings = [(name, value) for name, value in vars(module).items() if _is_plain(value)]
        settings = sorted((pair for pair in settings if pair[0] != "training"), key=str)
        yield path, _name(type(module)), settings
        kinds |= {_name(kind): kind for kind in type(module).__mro__}
    for name, kind in sorted(kinds.items()):
        if not name.startswith(("torch.", "builtins.")):
            functions = (value for _, value in sorted(vars(kind).items()) if isinstance(value, FunctionType))
            yield name, [list(_code(function.__code__)) for function in functions]


def _is_plain(value: object) -> bool:
    parts: Iterable[object] = value if isinstance(value, tuple | list) else (value,)
    return all(isinstance(part, PLAIN) for part in parts)


def _code(code: CodeType) -> Iterator[object]:
    """What a function does, without where it stands."""
    yield code.co_code
    yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        elif isinstance(constant, frozenset):
            yield sorted(map(repr, constant))
        else:
            yield constant


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
