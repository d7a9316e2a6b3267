"""Find the devices of a run, and the engine that the request names or that suits it."""

import os
import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import torch

from layerboard.benchmark.engines.base import Engine, LocalEngine
from layerboard.benchmark.engines.processes import ProcessEngine
from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms.parsers import AUTO
from layerboard.benchmark.forms.request import ENGINES, Request
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.zoo.errors import InputError, likely
from layerboard.zoo.libraries import optional
from layerboard.zoo.references import find_object
from layerboard.zoo.spec import BackboneSpec, Dtype

Specs = Sequence[BackboneSpec]
Devices = Sequence[torch.device]

EngineMaker = Callable[[Specs, Request, Devices], Engine]
"""Makes an engine for the backbones that have something to do, a request and the devices found of it."""

SMALL = 64  # input size in pixels up to which a backbone is too small to keep several threads busy
_NO_RAY = "--engine ray needs Ray; install it with pip install 'layerboard[ray]'"


def find_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is CUDA if available."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        close = likely("value", name, ("auto", "cpu", "cuda"))
        hint = f"; did you mean {close[0]}?" if close else ""
        raise InputError(f"there is no device {name!r}; expected auto, cpu, cuda or cuda:N{hint}") from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device {name!r} is not supported; expected auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        raise InputError(f"device {name!r} is not there: this machine has {count} CUDA devices")
    return device


def device_name(device: torch.device) -> str:
    """Name of a device by its maker; for a CPU also the number of threads per forward pass."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        facts = ""
    model = re.search(r"^model name\s*:\s*(.+)$", facts, re.MULTILINE)
    name = model[1] if model else platform.processor() or platform.machine() or "CPU"
    processor = " ".join(re.sub(r"\((?:R|TM)\)", " ", name, flags=re.IGNORECASE).split())
    threads = torch.get_num_threads()
    return f"{processor}, {threads} {'thread' if threads == 1 else 'threads'}"


def find_engine(backbones: Specs, request: Request, devices: Devices) -> Engine:
    """The engine that the request names, or that suits it.

    ``backbones`` are those with work left, ``devices`` those of `find_devices`. Raises InputError if Ray is
    not installed, or if a backbone is a network of this process and the engine uses others.
    """
    if (request.engine_name not in ("auto", "local") or len(devices) > 1) and (
        staying := _staying(backbones)
    ):
        raise InputError(
            f"{staying[0].name} is a network of this process and cannot run in another; leave out --engine "
            f"{request.engine_name} and several --device, or name a function that gives it (module:function)"
        )
    return cast("EngineMaker", find_object(ENGINES[request.engine_name]))(backbones, request, devices)


def suited_engine(backbones: Specs, request: Request, devices: Devices) -> Engine:
    """A process per device if there are several; on a CPU, parallel processes for several small backbones.

    Otherwise one backbone after another in this process. A run with a network given by ``from_module`` stays
    in this process, since no other has it.
    """
    if len(devices) > 1:
        return process_engine(backbones, request, devices)
    processes = min(len(backbones), request.workers)
    small = all(spec.input_size <= SMALL for spec in backbones)
    if _staying(backbones) or devices[0].type != "cpu" or not small or processes < 2:
        return LocalEngine()
    return ProcessEngine(processes, threads=max(1, request.workers // processes))


def local_engine(*_: object) -> Engine:
    """One backbone after another, in this process."""
    return LocalEngine()


def process_engine(_: object, request: Request, devices: Devices) -> Engine:
    """One process per GPU or per named device; on one CPU, one per worker."""
    if len(devices) == 1 and devices[0].type != "cuda":
        return ProcessEngine(request.workers, threads=1)
    # each process has --workers threads, or its share of the processors if that is less
    share = min(request.workers, (os.cpu_count() or 1) // len(devices))
    return ProcessEngine(len(devices), max(1, share), [str(device) for device in devices])


def ray_engine(_: object, request: Request, __: object) -> Engine:
    """The engine for Ray, which has its own devices; raises InputError if Ray is not installed."""
    optional("ray", _NO_RAY)
    from layerboard.benchmark.engines.ray import RayEngine

    return RayEngine(request)


def _staying(backbones: Specs) -> list[BackboneSpec]:
    return [spec for spec in backbones if spec.origin.stays]


def find_devices(request: Request) -> tuple[torch.device, ...]:
    """The devices that a request names; work done once for all uses the first. Raises InputError."""
    names = request.device.split(",")
    if request.engine_name == "ray":
        if len(names) > 1 or names == ["all"]:
            raise InputError("--engine ray takes every GPU of its cluster; leave out --device")
        optional("ray", _NO_RAY)  # before anything is read
        names = ["cpu" if request.device == "cpu" else "auto"]
    elif names == ["all"]:
        if not (gpus := torch.cuda.device_count()):
            raise InputError("--device all takes every GPU, and this machine has none; leave it out")
        names = [f"cuda:{number}" for number in range(gpus)]
    elif len(names) > 1 and (wrong := [name for name in names if name in ("auto", "all")]):
        raise InputError(
            f"--device takes {wrong[0]} alone, or names such as cuda:0,cuda:1; found {request.device!r}"
        )
    devices = tuple(find_device(name) for name in names)
    if len(devices) == 1:
        return devices
    # cuda is the first GPU
    devices = tuple(each if each.type == "cpu" else torch.device("cuda", each.index or 0) for each in devices)
    if len({device.type for device in devices}) > 1:
        raise InputError(f"--device takes devices of one kind; found {', '.join(names)}")
    if devices[0].type == "cuda" and len({*devices}) < len(devices):
        raise InputError(f"--device takes each GPU once; found {', '.join(names)}")
    if request.engine_name == "local":
        raise InputError("--engine local runs on one device; leave it out, or name one --device")
    return devices


def find_dtypes(
    given: tuple[Dtype, ...], protocols: Sequence[EvaluationProtocol], device: torch.device, report: Reporter
) -> tuple[Dtype, ...]:
    """The dtypes of a run; for ``--dtype auto``, those that the device and the protocol call for."""
    if AUTO not in given:
        return given
    exact = [protocol.name for protocol in protocols if protocol.gpu_dtype == "float32"]
    # GPUs before Ampere have no bfloat16
    fits = device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 8
    dtype: Dtype = "amp-bfloat16" if fits and not exact else "float32"
    why = f"the protocol {exact[0]} computes so" if fits and exact else f"for {device}"
    report.say(f"--dtype auto: {dtype}, {why}")
    return (dtype,)
