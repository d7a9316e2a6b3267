"""What is around a forward pass: the settings of torch that change its numbers are the usual ones inside it.

Someone's notebook may compute in autocast, in float64 by default, with TF32, on another default device or in
inference mode. What is kept of a pass is served to later ones, so none of these may be in its numbers.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock, RLock
from typing import Any, NamedTuple

import torch
from torch import overrides

from layerboard.zoo.errors import InputError


class _Setting(NamedTuple):
    """A setting of the whole process, and the values that it may have in a pass: the first is set."""

    read: Callable[[], object]
    write: Callable[[Any], object]
    usual: tuple[object, ...]


def _attribute(holder: object, name: str, *usual: object) -> _Setting:
    return _Setting(partial(getattr, holder, name), partial(setattr, holder, name), usual)


class _OlderName(NamedTuple):
    """A setting by which float32 keeps its mantissa, under the name that it had before torch 2.9.

    Torch refuses to read it where somebody has set the ``parts`` that replace it, each to another value. To
    set these in a pass would refuse that name to whatever is called in it, such as an export to ONNX.
    """

    get: Callable[[], object]
    put: Callable[[Any], object]
    parts: tuple[Any, ...]

    def read(self) -> object:
        """The value, or a list of those of the parts."""
        try:
            return self.get()
        except RuntimeError:
            return [each.fp32_precision for each in self.parts]

    def write(self, value: object) -> None:
        """Set what `read` gave."""
        if not isinstance(value, list):
            self.put(value)
            return
        for part, precision in zip(self.parts, value, strict=True):
            part.fp32_precision = precision


def _precision() -> list[_Setting]:
    """Settings by which float32 products and convolutions keep their mantissa, which TF32 shortens."""
    backends: Any = torch.backends
    cudnn, mkldnn, matmul = backends.cudnn, backends.mkldnn, backends.cuda.matmul
    new = hasattr(cudnn, "conv")  # since torch 2.9
    tf32 = partial(getattr, cudnn, "allow_tf32"), partial(setattr, cudnn, "allow_tf32")
    convolutions = _OlderName(*tf32, (cudnn.conv, cudnn.rnn) if new else ())
    products = torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    older = (convolutions, False), (_OlderName(*products, (matmul,) if new else ()), "highest")
    parts = (mkldnn.conv, mkldnn.rnn, mkldnn.matmul) if new else ()
    return [
        *([_attribute(backends, "fp32_precision", "none", "ieee")] if new else []),
        *(_Setting(each.read, each.write, (usual,)) for each, usual in older),
        *(_attribute(part, "fp32_precision", "ieee", "none") for part in parts),
    ]


_HALVES = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
_SETTINGS = [
    _Setting(torch.get_default_dtype, torch.set_default_dtype, (torch.float32,)),
    _Setting(torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, (0,)),
    _attribute(torch.backends.cudnn, "benchmark", False),
    _attribute(torch.backends.cudnn, "deterministic", False),
    *(_attribute(torch.backends.cuda.matmul, name, True) for name in _HALVES),
    *_precision(),
]
_AUTOCASTING = ("cpu", "cuda")  # devices of passes


class _SharedSettings:
    """The settings of the process, which the first of several threads changes and the last one puts back."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = Lock(), 0, list[Callable[[], object]]()

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                for each in _SETTINGS:
                    if (now := each.read()) not in each.usual:
                        self._before.append(partial(each.write, now))
                        each.write(each.usual[0])

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            while not self._users and self._before:
                self._before.pop()()


_shared = _SharedSettings()
_first_process: list[int] = []  # the process that computed first, of this one and those it was forked from


@contextmanager
def pass_context(*, gradients: bool = False) -> Iterator[None]:
    """Context in which torch computes as in a new process, whatever is around it; also a decorator.

    Autocast, inference mode, function modes, a default device and a default dtype, TF32, deterministic
    algorithms and the choice of kernels by speed are off, and gradients too unless they are asked for.
    Afterwards the settings of this thread and of the process are as before.
    """
    with ExitStack() as around, _shared:
        if torch.is_inference_mode_enabled():
            around.enter_context(torch.inference_mode(mode=False))
        for device in _AUTOCASTING:
            if torch.is_autocast_enabled(device):
                around.enter_context(torch.autocast(device, enabled=False))
        if not torch.compiler.is_compiling():  # an export has modes of its own
            around.enter_context(_without_modes())
        around.enter_context(torch.set_grad_enabled(gradients))
        yield


@contextmanager
def _without_modes() -> Iterator[None]:
    """Context without the function modes of this thread, of which a default device is one."""
    stack: Any = overrides  # without types
    modes = [stack._pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    try:
        yield
    finally:
        for mode in reversed(modes):
            stack._push_mode(mode)


def require_own_threads() -> None:
    """Raise InputError after a fork of a process that has computed in several threads: torch would wait."""
    if not _first_process:
        _first_process.append(os.getpid())
    elif _first_process[0] != os.getpid() and torch.get_num_threads() > 1:
        raise InputError(
            "this process is a fork of one in which torch has computed with several threads, which it would "
            "wait for; start processes by spawn, as multiprocessing.get_context('spawn') does, or call "
            "torch.set_num_threads(1) in this one first"
        )


class PassLock:
    """A lock that lets one thread at a time through a network; a copy of it is another lock.

    It raises InputError as `require_own_threads` does.
    """

    def __init__(self) -> None:
        self._lock, self._process = RLock(), os.getpid()

    def __enter__(self) -> None:
        require_own_threads()
        if self._process != os.getpid():  # a thread that is not there any more may have held it
            self.__init__()  # type: ignore[misc]
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["PassLock"], tuple[()]]:
        return PassLock, ()


_SHORT = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|not enough memory|alloc_failed"
    r"|\Acould not create a (primitive|memory object)\Z"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory of the host or of a graphics card was exhausted."""
    # the CPU allocator of torch raises a plain RuntimeError; oneDNN gives no reason
    short = isinstance(error, RuntimeError) and _SHORT.search(str(error).lower())
    return bool(short) or isinstance(error, MemoryError | torch.OutOfMemoryError)
