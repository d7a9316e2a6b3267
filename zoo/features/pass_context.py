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
    """A setting of the whole process, and its value in a pass."""

    read: Callable[[], object]
    write: Callable[[Any], object]
    usual: object


def _attributes(usual: object, name: str, *holders: object) -> list[_Setting]:
    return [_Setting(partial(getattr, each, name), partial(setattr, each, name), usual) for each in holders]


def _precision() -> list[_Setting]:
    """Settings by which float32 products and convolutions keep their mantissa, which TF32 shortens."""
    backends: Any = torch.backends
    if hasattr(backends.cudnn, "conv"):  # since torch 2.9
        cudnn, mkldnn, matmul = backends.cudnn, backends.mkldnn, backends.cuda.matmul
        parts = cudnn.conv, cudnn.rnn, mkldnn.conv, mkldnn.rnn, mkldnn.matmul, matmul
        return _attributes("ieee", "fp32_precision", *parts)
    names = torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    return [_Setting(*names, "highest"), *_attributes(False, "allow_tf32", backends.cudnn)]


_HALVES = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
_SETTINGS = [
    _Setting(torch.get_default_dtype, torch.set_default_dtype, torch.float32),
    _Setting(torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 0),
    *_attributes(False, "benchmark", torch.backends.cudnn),
    *_attributes(False, "deterministic", torch.backends.cudnn),
    *(each for name in _HALVES for each in _attributes(True, name, torch.backends.cuda.matmul)),
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
                changed = [(each, now) for each in _SETTINGS if (now := each.read()) != each.usual]
                self._before = [partial(each.write, now) for each, now in changed]
                for each, _ in changed:
                    each.write(each.usual)

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
