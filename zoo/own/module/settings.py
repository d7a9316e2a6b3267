"""Digests of the settings and the code of a network, whatever they are kept in, and without addresses."""

import copyreg
import dis
import hashlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from pathlib import PurePath
from threading import Lock, RLock
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import torch
from torch import Tensor, nn

from layerboard.zoo.own.module.probe import tensor_bytes

Settings = dict[tuple[str, str], tuple[bytes, str]]
"""By path and attribute its digest, and the type in it that cannot be described; "" for none."""

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range)
OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)
INERT = (type(Lock()), type(RLock()), GetSetDescriptorType, MemberDescriptorType)  # that hold no settings
MOST = 200_000  # values of one attribute: what is larger is no setting
# Attributes that are no settings: mode and weights, where a network comes from, and who trains it.
OTHERS = {
    *("training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"),
    *("name_or_path", "_name_or_path", "_commit_hash", "transformers_version", "architectures"),
    *("_is_hf_initialized", "_weight_conversions", "_use_kernels", "_trainer", "_fabric"),
}
_OF_TRAINING = ("_backward", "_state_dict", "_load_state_dict", "_is_full_backward")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")  # by numbers of a counter of the process


class _UndescribedError(Exception):
    """A value that cannot be described: the name of its type."""


def settings_of(net: nn.Module) -> Settings:
    """The settings of each module of a network, and of each class and function that they come from."""
    paths = {id(module): path for path, module in net.named_modules()}
    settings: Settings = {}
    kinds: dict[str, type] = {}
    for path, module in net.named_modules():
        kinds |= {_name(kind): kind for kind in type(module).__mro__}
        settings[path, ""] = _name(type(module)).encode(), ""
        for name, value in vars(module).items():
            if name not in OTHERS and not name.startswith(_OF_TRAINING):
                held = [*value.values()] if name.startswith(_HOOKS) else value
                settings[path, name] = _described(held, paths)
    for name, kind in kinds.items():
        if not name.startswith(("torch.", "builtins.")):
            settings[name, "class"] = _described(kind, paths)
    return settings


def _described(value: object, paths: Mapping[int, str]) -> tuple[bytes, str]:
    try:
        return _Describer(paths).digest(value), ""
    except _UndescribedError as error:
        return b"", str(error)
    except RecursionError:
        return b"", _name(type(value))


class _Describer:
    """Digests of values by their content; equal ones of other processes have the same."""

    def __init__(self, paths: Mapping[int, str]) -> None:
        self._paths = paths  # of the modules of the network, by their identity
        self._known: dict[int, bytes] = {}
        self._held: list[object] = []  # so that no other value gets the identity of one that is known

    def digest(self, value: object) -> bytes:
        if (known := self._known.get(id(value))) is not None:
            return known
        if len(self._held) > MOST:
            raise _UndescribedError(_name(type(value)))
        self._held.append(value)
        self._known[id(value)] = b"inside itself"
        combined = hashlib.sha256(_name(type(value)).encode())
        for part in self._parts(value):
            content = part if isinstance(part, bytes) else self.digest(part)
            combined.update(len(content).to_bytes(8, "little") + content)
        self._known[id(value)] = combined.digest()
        return combined.digest()

    def _parts(self, value: object) -> Iterable[object]:
        """What a value consists of: bytes, or other values."""
        if id(value) in self._paths:
            return [self._paths[id(value)].encode()]
        if isinstance(value, set | frozenset):
            return sorted(map(self.digest, value))
        parts = next((parts for kinds, parts in _PARTS if isinstance(value, kinds)), None)
        if parts is not None:
            return parts(value)
        inner = getattr(value, "__wrapped__", None)  # of ``lru_cache``, whose state is a cache
        return [inner] if isinstance(inner, FunctionType) else _object_parts(value)


def _object_parts(value: object) -> list[object]:
    """What pickle would keep of an object: how it is made, and its fields and items."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        made = reduce(value) if reduce else value.__reduce_ex__(4)
    except Exception as error:  # of any kind
        raise _UndescribedError(_name(type(value))) from error
    listed = (
        [made]
        if isinstance(made, str)
        else [[*part] if isinstance(part, Iterator) else part for part in made]
    )
    return [type(value), *(_fields_of(part) if isinstance(part, dict) else part for part in listed)]


def _fields(value: object) -> list[object]:
    """The attributes of an object of a class that has some beside its content."""
    return [_fields_of(vars(value))] if hasattr(value, "__dict__") and vars(value) else []


def _fields_of(fields: Mapping[str, object]) -> dict[str, object]:
    of_files = (
        {"dtype"} if "transformers_version" in fields else set()
    )  # a configuration says that of its file
    return {name: value for name, value in fields.items() if name not in OTHERS | of_files}


def _class_parts(kind: type) -> Iterator[object]:
    """The name of a class, its code and, unless it is of a library, the settings in it and its bases."""
    yield _name(kind)
    if is_of_library(kind.__module__):
        if not kind.__module__.startswith(("torch.", "builtins")):
            functions = (value for _, value in sorted(vars(kind).items()) if isinstance(value, FunctionType))
            yield from (value.__code__ for value in functions)
        return
    yield kind.__bases__
    for name, value in sorted(vars(kind).items()):
        if isinstance(value, FunctionType) or not name.startswith(("__", "_abc_")):
            yield from (name, value)


def _function_parts(function: FunctionType) -> Iterator[object]:
    """The code of a function and, unless it is of a library, all that it holds and refers to."""
    yield _name(function)
    if is_of_library(function.__module__):
        return
    yield function.__code__
    yield from (function.__defaults__, function.__kwdefaults__, vars(function))
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # of a function that is still being defined
            yield None
    inside = [*_codes(function.__code__)]
    steps = (step for code in inside for step in dis.get_instructions(code))
    attributes = sorted({name for code in inside for name in code.co_names})
    for name in sorted({str(step.argval) for step in steps if step.opname == "LOAD_GLOBAL"}):
        value = function.__globals__.get(name)
        yield value
        if isinstance(value, ModuleType) and not is_of_library(value.__name__):
            yield from (vars(value).get(each) for each in attributes)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def is_of_library(module: str | None) -> bool:
    """Whether a module is of Python, of this package or installed, so that its name and version say all."""
    root = (module or "").partition(".")[0]
    if root in ("layerboard", "") or root in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _name(kind: type | Callable[..., object]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _module_parts(module: nn.Module) -> list[object]:
    """The class, the settings and the weights of a module that is no part of the network."""
    settings = {path: _fields_of(vars(inner)) for path, inner in module.named_modules()}
    return [type(module), settings, [*module.state_dict().items()]]


# What a value of these kinds consists of, by the first that fits.
_PARTS: Sequence[tuple[Any, Callable[[Any], Iterable[object]]]] = (
    (INERT, lambda _: ()),
    (bytes, lambda value: (value,)),
    (PLAIN, lambda value: (repr(value).encode(errors="surrogatepass"),)),
    ((*OF_TORCH, PurePath), lambda value: (str(value).encode(errors="surrogateescape"),)),
    (Tensor, lambda tensor: (tensor_bytes(tensor),)),
    (Mapping, lambda mapping: (*mapping.keys(), *mapping.values(), *_fields(mapping))),
    (list | tuple, lambda values: (*values, *_fields(values))),
    (type, _class_parts),
    (FunctionType, _function_parts),
    (CodeType, lambda code: (code.co_code, code.co_names, *code.co_consts)),
    (ModuleType, lambda module: (module.__name__,)),
    (MethodType, lambda method: (method.__func__, method.__self__)),
    (BuiltinFunctionType, lambda function: (function.__qualname__, function.__self__)),
    (property, lambda value: (value.fget, value.fset)),
    (cached_property, lambda value: (value.func,)),
    (staticmethod | classmethod, lambda value: (value.__func__,)),
    (weakref.ref, lambda reference: (reference(),)),
    (ContextVar, lambda variable: (variable.name, variable.get(None))),
    (torch.Generator, lambda generator: (generator.get_state(),)),
    (nn.Module, _module_parts),
)
