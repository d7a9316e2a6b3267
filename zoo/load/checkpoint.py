"""Files of a backbone: their locations, their version, the tensors in them, and what lies in their place."""

import hashlib
import pickle
import re
import time
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
from safetensors.torch import load_file

from layerboard.zoo.errors import InputError, counted, ensure, first_line, some
from layerboard.zoo.reading import open_regular, read_as, read_regular, require_regular

T = TypeVar("T")

# Names of weight files, the preferred first; an index lists the parts of a split file.
WEIGHT_FILES = (
    *("model.safetensors", "model.safetensors.index.json"),
    *("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
LONGEST_LIST = 2**22  # maximum bytes of the header that describes the tensors: some 40,000 of them
_MOST_JSON = 2**26  # maximum bytes of a JSON file about a network, mostly the index of its parts
_TICK = 100_000_000  # nanoseconds
OPEN_CLIP = "open_clip_config.json"
# Files that say how images are shown, the first one that says it counts: as transformers looks for them.
PROCESSORS = (
    *("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json"),
    OPEN_CLIP,
)
SMALL_FILES = ("config.json", *PROCESSORS)  # beside weights, if present
_ADAPTER = "adapter_config.json"  # file of PEFT beside the weights of an adapter
# What files begin with, what they are, and what to do.
_PAGES = (
    (
        rb"version https://git-lfs",
        "a pointer of Git LFS, not the file itself",
        "fetch it with `git lfs pull`, or download it from its page",
    ),
    (
        rb"\s*(<!doctype|<html|<head|<\?xml)",
        "a web page, not the file itself",
        "download the file (on the Hub from /resolve/, not /blob/)",
    ),
)
# Names of tensors of adapters: LoRA, LoHa, LoKr, IA3, VeRA, OFT.
_OF_ADAPTERS = re.compile(r"(^|\.)(lora_|hada_w|lokr_w|ia3_l|vera_lambda|oft_r|oft_blocks)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Files of one version of a backbone."""

    weights: tuple[Path, ...]
    config: Path | None
    preprocessors: tuple[Path, ...]  # those of `PROCESSORS` that are there
    revision: str  # commit of its repository, or digest of the files
    part: str = ""  # label of the one of several networks in the weights that was asked for


@dataclass(frozen=True, slots=True)
class _Index:
    """What lists the parts of a split file: the file of each tensor."""

    weight_map: dict[str, str]


def in_directory(directory: Path, revision: str | None = None) -> Checkpoint:
    """Files of a directory in Hugging Face format, of a commit or a digest; InputError without weights."""
    paths = (directory / name for name in WEIGHT_FILES if (directory / name).is_file())
    path = next(paths, None) or _refuse_without_weights(directory, f"{WEIGHT_FILES[0]} or {WEIGHT_FILES[2]}")
    weights = shards(path) if path.name.endswith(".index.json") else (path,)
    if missing := [each.name for each in weights if not each.is_file()]:
        raise InputError(
            f"{path} lists {counted(len(weights), 'files')}, of which {some(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not there; put all of them beside it."
        )
    config, processors = _beside((directory,))
    hashed = weights if config is None else (*weights, config)
    return Checkpoint(weights, config, processors, revision or files_digest(hashed))


def of_user(path: Path) -> Checkpoint:
    """Files of a user's directory in Hugging Face format; its revision is a digest of all of them.

    A file of weights is one of such a directory, or of one below it, as trainings save several.
    """
    if path.is_file():
        config, processors = _beside(path.absolute().parents[:2])
        hashed = filter(None, (path, config, *processors))
        return Checkpoint((path,), config, processors, files_digest(hashed))
    checkpoint = in_directory(path)
    others = (path / name for name in (WEIGHT_FILES[1], WEIGHT_FILES[3], *SMALL_FILES))
    return replace(checkpoint, revision=files_digest((*checkpoint.weights, *filter(Path.is_file, others))))


def _beside(folders: Sequence[Path]) -> tuple[Path | None, tuple[Path, ...]]:
    """The configuration and the processors in the first of some folders that has each."""
    paths = (next(filter(Path.is_file, (each / name for each in folders)), None) for name in SMALL_FILES)
    config, *processors = paths
    return config, tuple(filter(None, processors))


def shards(index: Path) -> tuple[Path, ...]:
    """Files that an index lists, beside it; raises InputError if it is damaged or names others."""
    names = sorted({*read_network_json(index, _Index).weight_map.values()})
    if not names or any(Path(name).name != name or name == ".." or "\0" in name for name in names):
        raise InputError(f"{index} does not list the files of a checkpoint under 'weight_map'.")
    return tuple(index.parent / name for name in names)


def read_network_json(path: Path, kind: type[T]) -> T:
    """Content of a JSON file about a network; raises InputError if it cannot be read, or is none."""
    refuse_pages(path)
    return read_as(kind, path, read=partial(read_regular, most=_MOST_JSON))


def read_weights(paths: Iterable[Path]) -> dict[str, Any]:
    """Tensors of a checkpoint by name; those of a training checkpoint are still in their inner dictionary."""
    tensors: dict[str, Any] = {}
    for path in paths:
        try:
            require_regular(path)  # a pipe would be waited for
        except OSError as error:
            raise InputError(f"{path} is no readable file of weights ({first_line(error)}).") from error
        head = refuse_pages(path)
        is_zip, is_named = head[:2] == b"PK", path.suffix == ".safetensors"
        ensure(
            not (is_zip and is_named), f"{path} is a file of torch.save; give it a name that ends in .pth."
        )
        if not is_named and head[8:9] != b"{":  # the list of tensors of safetensors, behind its length
            tensors |= _read_pickle(path)
            continue
        try:
            listed = int.from_bytes(head[:8], "little")
            _require_short(listed if listed < path.stat().st_size else 0)
            tensors |= load_file(path)
        except Exception as error:
            reason = f"is not a readable safetensors file ({first_line(error)})"
            raise InputError(f"{path} {reason}; fetch it again.") from error
    inner: list[Any] = [*tensors.values()]
    for names in (tensors, *(each for each in inner if isinstance(each, Mapping))):
        if any(_OF_ADAPTERS.search(str(name)) for name in names):
            raise InputError(_adapter(path))
    return tensors


def _require_short(listed: int) -> None:
    if listed > LONGEST_LIST:
        raise ValueError(f"its list of tensors has {listed:,} bytes, of at most {LONGEST_LIST:,}")


def _read_pickle(path: Path) -> dict[str, Any]:
    sizes = dict[str, int]()  # of the files in a zip archive, by their last names; none if it is no such
    with (
        suppress(OSError, ValueError, NotImplementedError, zipfile.BadZipFile),
        zipfile.ZipFile(path) as opened,
    ):
        sizes = {info.filename.rpartition("/")[2]: info.file_size for info in opened.infolist()}
    if "constants.pkl" in sizes:  # as OpenAI publishes CLIP: loading it would execute it
        raise InputError(
            f"{path} is a TorchScript program, which is not run; if you trust it, export its weights with "
            f"torch.save(torch.jit.load('{path.name}', map_location='cpu').state_dict(), 'weights.pth') and "
            "give that file."
        )
    try:
        _require_short(sizes.get("data.pkl", 0))
        with (
            warnings.catch_warnings(action="ignore", category=UserWarning),
            torch.serialization.safe_globals([Namespace]),  # Options of a training: plain data.
        ):
            # Memory-mapped, so that the weights are in memory once; files of torch 1.5 and older are no zips.
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{path} is refused: it is damaged, or holds more than tensors and plain data and could run "
            "code; save tensors only, as by torch.save(network.state_dict(), FILE)."
        ) from error
    except Exception as error:  # Any error: a damaged pickle can fail in many ways.
        reason = f"is not a readable file of weights ({first_line(error)})"
        raise InputError(f"{path} {reason}; fetch it again.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} should hold a dictionary of tensors, not a {type(content).__name__}.")
    return content


def refuse_pages(path: Path) -> bytes:
    """The first bytes of a file, b"" if it cannot be read.

    Raises InputError if they are of what is kept or shown in place of the file that was meant.
    """
    try:
        with open_regular(path) as file:
            head = file.read(64)
    except OSError:
        return b""
    for pattern, kind, advice in _PAGES:
        ensure(not re.match(pattern, head, re.IGNORECASE), f"{path} is {kind}; {advice}.")
    return head


def _refuse_without_weights(directory: Path, expected: str) -> NoReturn:
    """Raise InputError for a directory without weights, with what it holds instead."""
    if (directory / _ADAPTER).is_file():
        raise InputError(_adapter(directory))
    held = sorted(each.name for each in directory.iterdir() if each.is_file())
    raise InputError(f"{directory} has no weights; expected {expected}, found {some(held, 5) or 'no files'}.")


def _adapter(path: Path) -> str:
    return (
        f"{path} is an adapter (such as LoRA), which changes another network and is none; merge it: "
        "PeftModel.from_pretrained(network, DIRECTORY).merge_and_unload().save_pretrained(NEW)."
    )


def files_digest(paths: Iterable[Path]) -> str:
    """Digest of the content of files, in that order; raises InputError if one cannot be read."""
    combined = hashlib.sha256()
    for path in paths:
        try:
            combined.update(_digest_of(path.absolute()))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    return f"sha256:{combined.hexdigest()[:16]}"


def weights_sha256(paths: Sequence[Path]) -> str:
    """SHA-256 of a file, 64 hexadecimal digits; of several that of the lines which ``sha256sum`` prints.

    Lines are sorted by the names of the files. Raises OSError.
    """
    digests = {path.name: _digest_of(path.absolute()).hex() for path in paths}
    if len(paths) == 1:
        return digests[paths[0].name]
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()


def _digest_of(path: Path) -> bytes:
    """Digest of a file, from memory if the system says that it is as before; raises OSError."""
    status = path.stat()
    state = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
    # two changes in one tick of the system's clock leave the same times
    is_settled = time.time_ns() - max(state[1:3]) > _TICK
    return _digest(path, state) if is_settled else _digest.__wrapped__(path, state)


@lru_cache(maxsize=256)
def _digest(path: Path, state: tuple[int, ...]) -> bytes:
    # what the system says of the file is only the key of the cache
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").digest()
