"""What is wrong with the libraries and the machine, in one sentence each. It imports none of them here."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from layerboard.benchmark.forms import parsers
from layerboard.zoo.errors import InputError, error_kind, first_line, shortened
from layerboard.zoo.libraries import (
    CHECK,
    OURS,
    TORCH,
    explained,
    fits,
    installed,
    is_there,
    named,
    requirements,
)

EXTRAS = ("altair", "heic", "timm", "onnx", "video", "ray")
MODULES = {
    "faiss-cpu": "faiss",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "transformers": "transformers.modeling_utils",  # by itself it imports little
    "vl-convert-python": "vl_convert",
}
"""Modules that show whether a distribution works, where they have another name."""

SECONDS = 180.0  # in which the imports of all libraries must end
LEAST_DISK = 2**30  # free bytes that a small run may need
LEAST_SHARED = 2**25  # free bytes of shared memory; containers have 2**26
LEAST_FILES = 256  # that may be open at once
SHARED = Path("/dev/shm")  # noqa: S108  # memory that processes share
DRIVER = Path("/proc/driver/nvidia/version")  # exists where an NVIDIA driver is loaded
MARK = "\0"  # begins the lines of `probe` among those that libraries print
PROBE = f"import sys; from {__name__} import probe; probe(sys.argv[1:])"


@dataclass(frozen=True)
class Diagnosis:
    """What was looked at, a sentence about it, and whether something is wrong with it."""

    what: str
    sentence: str
    wrong: bool = False

    def __str__(self) -> str:
        return f"{'WRONG' if self.wrong else 'ok':<5}  {self.what}: {self.sentence}"


def diagnoses() -> Iterator[Diagnosis]:
    """What was found of libraries, locale, threads, folders, disk and memory, part by part.

    Libraries are imported in another process, where one that crashes or hangs does no harm.
    """
    for look in (_python, _libraries, _locale, _threads, _folders, _shared_memory):
        try:
            yield from list(look())
        except Exception as error:  # that a part cannot be looked at is a finding, too
            what = look.__name__.strip("_").replace("_", " ")
            sentence = f"cannot be looked at ({error_kind(error)}: {first_line(error)})"
            yield Diagnosis(what, sentence, wrong=True)


def _python() -> Iterator[Diagnosis]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield Diagnosis(OURS, f"{installed(OURS) or 'its version is unknown'}, Python {python} on {sys.platform}")
    if sys.flags.optimize > 1:
        yield Diagnosis(
            "Python", "transformers needs docstrings; unset PYTHONOPTIMIZE or leave out -OO", True
        )


def _libraries() -> Iterator[Diagnosis]:
    """Every library that is needed, then those of the extras, imported in turn as in one run."""
    wanted = dict(requirements(OURS))
    extras = {name: extra for extra in EXTRAS for name, _ in requirements(OURS, extra)}
    versions = {name: text for extra in EXTRAS for name, text in requirements(OURS, extra)} | wanted
    order = sorted(versions, key=lambda name: (name in extras, name != TORCH))
    order.insert(1, "torchvision")  # needed by none of ours; if it does not fit, it breaks transformers
    modules = {name: MODULES.get(name.lower(), name.lower().replace("-", "_")) for name in order}
    present = [name for name in order if installed(name) or is_there(modules[name].partition(".")[0])]
    answers = dict(_imported([modules[name] for name in present]))
    seen: set[str] = set()
    for name in order:
        answer = answers.get(modules[name], "")
        if name not in present:
            yield _absent(name, extras.get(name, ""), needed=name in wanted)
        elif not answer and not fits(name, versions.get(name, "")):
            needs = f"{OURS} needs {name}{versions[name]}"
            yield Diagnosis(name, f"{installed(name)} is installed, and {needs}: pip install -U {name}", True)
        elif answer not in seen:  # a broken library breaks others, with the same sentence
            yield Diagnosis(name, answer or installed(name), bool(answer))
        seen |= {answer} - {""}
    for what in FACTS:
        mark, _, sentence = answers.get(what, "wrong nothing is known").partition(" ")
        yield Diagnosis(what, sentence, mark == "wrong")


def _absent(name: str, extra: str, *, needed: bool) -> Diagnosis:
    if needed:
        return Diagnosis(name, f"is not installed, and {OURS} needs it: pip install {name}", wrong=True)
    how = f"pip install '{OURS}[{extra}]'" if extra else "only names timm:... need it"
    return Diagnosis(name, f"not installed ({how})")


def _imported(modules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with each module, "" for nothing, and the `FACTS`; the modules share one process.

    If it ends or hangs at a module, another process goes on with those after it.
    """
    waiting = [*modules, *FACTS]
    while waiting:
        lines, end = _probed(waiting)
        for line in lines:
            _, mark, answer = line.partition(MARK)
            if mark:
                yield waiting.pop(0), answer
        if waiting:
            name = waiting.pop(0)
            sentence = f"its import {end[:200]}; install it again"
            yield name, f"wrong {sentence}" if name in FACTS else sentence


def _probed(names: Sequence[str]) -> tuple[list[str], str]:
    """The lines that a process of `probe` prints, and how it ended, as a phrase."""
    try:
        process = subprocess.run(  # noqa: S603  # this Python
            [sys.executable, "-P", "-c", PROBE, *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=None if _is_there(Path()) else "/",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        printed: bytes = error.output or b""
        return printed.decode(errors="replace").splitlines(), f"does not end in {SECONDS:.0f} seconds"
    lines = process.stdout.decode(errors="replace").splitlines()
    last = f" ({lines[-1].strip()})" if lines and MARK not in lines[-1] else ""
    code, known = process.returncode, {each.value: each.name for each in signal.Signals}
    if code >= 0:
        return lines, f"ends Python with exit code {code}{last}"
    return lines, f"crashes Python by {known.get(-code, -code)}{last}"


def probe(names: Sequence[str]) -> None:
    """Import modules in turn and print a line for each, in a process of its own."""
    for name in names:
        try:
            answer = FACTS[name]() if name in FACTS else ""
            if name not in FACTS:
                import_module(name)
        except BaseException as error:
            reason = str(explained(error) or f"{error_kind(error)}: {first_line(error)}")
            answer = f"{'wrong ' if name in FACTS else ''}{reason.removesuffix(f'; {CHECK}')}"
        line = " ".join(answer.split()).replace(MARK, "")
        sys.stdout.buffer.write(f"{MARK}{line}\n".encode())
        sys.stdout.buffer.flush()


def _openmp() -> str:
    """Whether two runtimes of OpenMP harm each other: that of Intel or LLVM, and another one."""
    from threadpoolctl import threadpool_info

    runtimes = {
        info["filepath"]: info["prefix"] for info in threadpool_info() if info["user_api"] == "openmp"
    }
    paths, number = ", ".join(sorted(runtimes)), len(runtimes)
    if number > 1 and {*runtimes.values()} - {"libgomp"}:
        return f"wrong it is loaded {number} times, which may crash or hang ({paths}); install all with pip"
    return f"ok {number} runtimes of one kind" if number > 1 else f"ok {paths or 'none is loaded'}"


def _gpu() -> str:
    """Whether torch can use the NVIDIA GPU, if there is one."""
    import torch

    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    if not DRIVER.exists() and shutil.which("nvidia-smi") is None:
        return f"ok there is no NVIDIA driver; torch is built for {built}"
    text = DRIVER.read_text(encoding="utf-8", errors="replace") if DRIVER.exists() else ""
    version = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", text)
    driver = f"the NVIDIA driver {version[1]}" if version else "an NVIDIA driver"
    if not torch.version.cuda:
        return f"wrong there is {driver}, and {named(TORCH)} is built for no CUDA; install a build for CUDA"
    try:
        torch.zeros(1, device="cuda").add_(1).item()
    except Exception as error:
        return (
            f"wrong {driver} and {named(TORCH)} for {built} do not work together ({first_line(error)}); "
            "update the driver, or install a torch for an older CUDA"
        )
    return f"ok {torch.cuda.get_device_name()}, {driver}, torch for {built}"


FACTS: dict[str, Callable[[], str]] = {"OpenMP": _openmp, "GPU": _gpu}
"""What can be asked only where libraries are loaded; each answer begins with ``ok`` or ``wrong``."""


def _locale() -> Iterator[Diagnosis]:
    names, text = sys.getfilesystemencoding(), sys.stdout.encoding
    if names.lower().replace("-", "") != "utf8":
        yield Diagnosis("locale", f"names of files are read as {names}; set PYTHONUTF8=1", wrong=True)
    else:
        yield Diagnosis("locale", f"names of files are {names}, what is printed is {text}")


def _threads() -> Iterator[Diagnosis]:
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads and not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", threads):
        yield Diagnosis(
            "OMP_NUM_THREADS", f"expected a number, found {shortened(threads)}; unset it", wrong=True
        )
    if sys.platform != "win32":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        few = 0 <= limit < LEAST_FILES
        sentence = f"{limit} at most; allow more, as by: ulimit -n {4 * LEAST_FILES}"
        yield Diagnosis("open files", sentence if few else "enough may be open", wrong=few)


def _folders() -> Iterator[Diagnosis]:
    hub = os.environ.get("HF_HOME") or "~/.cache/huggingface"
    places: tuple[tuple[str, Callable[[], str | Path], str], ...] = (
        ("cache", parsers.default_cache, "give --cache DIR, or set LAYERBOARD_CACHE"),
        ("files of the Hub", lambda: os.path.expanduser(hub), "set HF_HOME to a folder that can be written"),
        ("temporary files", tempfile.gettempdir, "set TMPDIR to a folder that can be written"),
        ("working folder", os.getcwd, "change to another folder, or give --output DIR"),
    )
    for what, folder_of, remedy in places:
        try:
            yield _written(what, Path(folder_of()), remedy)
        except (OSError, InputError, RuntimeError) as error:
            yield Diagnosis(what, f"cannot be used ({first_line(error)}); {remedy}", wrong=True)


def _written(what: str, folder: Path, remedy: str, least: int = LEAST_DISK) -> Diagnosis:
    """Whether a folder, or the nearest one above it that exists, can be written and has room."""
    there = next(each for each in (folder, *folder.absolute().parents) if _is_there(each))
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x")
            file.flush()
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Diagnosis(what, f"{folder} cannot be written ({first_line(error)}); {remedy}", wrong=True)
    few = free < least
    sentence = f"{folder} can be written, {free / 1e9:,.1f} GB are free"
    return Diagnosis(what, f"{sentence}; {remedy}" if few else sentence, wrong=few)


def _is_there(path: Path) -> bool:
    try:
        return path.absolute().exists()
    except OSError:  # the working folder was removed, or a folder above must not be read
        return False


def _shared_memory() -> Iterator[Diagnosis]:
    if sys.platform == "linux":
        remedy = "processes share memory there: give --workers 1 --engine local, or docker run --shm-size=1g"
        if SHARED.is_dir():
            yield _written("shared memory", SHARED, remedy, LEAST_SHARED)
        else:
            yield Diagnosis("shared memory", f"{SHARED} does not exist; {remedy}", wrong=True)
