"""Files of a backbone: their locations, their version, and the tensors in them."""

import hashlib
import json
import pickle
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from layerboard.zoo.errors import InputError, first_line

# Names of weight files, the preferred first; an index lists the parts of a split file.
WEIGHT_FILES = (
    *("model.safetensors", "model.safetensors.index.json"),
    *("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
LONGEST_LIST = 2**22  # maximum bytes of the header that describes the tensors: some 40,000 of them
SMALL_FILES = ("config.json", "preprocessor_config.json")  # beside weights, if present


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Files of one version of a backbone."""

    weights: tuple[Path, ...]
    config: Path | None  # these two are optional
    preprocessor: Path | None
    revision: str  # commit of its repository, or digest of the files
    part: str = ""  # label of the one of several networks in the weights that was asked for


def in_directory(directory: Path, revision: str | None = None) -> Checkpoint:
    """Files of a directory in Hugging Face format, of a commit or a digest; InputError without weights."""
    path = next((directory / name for name in WEIGHT_FILES if (directory / name).is_file()), None)
    if path is None:
        raise InputError(f"{directory} has no weights; expected {WEIGHT_FILES[0]} or {WEIGHT_FILES[2]}.")
    weights = shards(path) if path.name.endswith(".index.json") else (path,)
    config, preprocessor = (path if path.is_file() else None for path in map(directory.joinpath, SMALL_FILES))
    hashed = weights if config is None else (*weights, config)
    return Checkpoint(weights, config, preprocessor, revision or digest(hashed))


def shards(index: Path) -> tuple[Path, ...]:
    """Files that an index lists, beside it; raises InputError if it is damaged or names others."""
    files = read_json(index).get("weight_map")
    names = sorted({str(name) for name in files.values()}) if isinstance(files, dict) else []
    if not names or any(Path(name).name != name or name == ".." or "\0" in name for name in names):
        raise InputError(f"{index} does not list the files of a checkpoint under 'weight_map'.")
    return tuple(index.parent / name for name in names)


def read_json(path: Path) -> dict[str, Any]:
    """Content of a JSON file; raises InputError if it cannot be read, or is not a JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a readable JSON file: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} should hold a JSON object, not a {type(content).__name__}.")
    return content


def read_weights(paths: Iterable[Path]) -> dict[str, Tensor]:
    """Tensors of a checkpoint by name; those of a training checkpoint are still in their inner dictionary."""
    tensors: dict[str, Tensor] = {}
    for path in paths:
        if path.suffix != ".safetensors":
            tensors |= _read_pickle(path)
            continue
        try:
            with path.open("rb") as file:
                listed = int.from_bytes(file.read(8), "little")
            _require_short(listed if listed < path.stat().st_size else 0)
            tensors |= load_file(path)
        except Exception as error:
            reason = f"is not a readable safetensors file ({first_line(error)})"
            raise InputError(f"{path} {reason}; fetch it again.") from error
    return tensors


def _require_short(listed: int) -> None:
    if listed > LONGEST_LIST:
        raise ValueError(f"its list of tensors has {listed:,} bytes, of at most {LONGEST_LIST:,}")


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename.rpartition("/")[2]: info.file_size for info in archive.infolist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        sizes = {}  # not a readable zip: loading reports it
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
            f"{path} is refused: it is damaged, or holds more than tensors and plain data and could run code."
        ) from error
    except Exception as error:  # Any error: a damaged pickle can fail in many ways.
        reason = f"is not a readable file of weights ({first_line(error)})"
        raise InputError(f"{path} {reason}; fetch it again.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} should hold a dictionary of tensors, not a {type(content).__name__}.")
    return content


def digest(paths: Iterable[Path]) -> str:
    """Digest of the content of files, in that order; raises InputError if one cannot be read."""
    combined = hashlib.sha256()
    for path in paths:
        try:
            status = path.stat()
            combined.update(_digest(path, status.st_size, status.st_mtime_ns))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    return f"sha256:{combined.hexdigest()[:16]}"


@lru_cache(maxsize=256)
def _digest(path: Path, size: int, modified: int) -> bytes:
    # Size and modification time are only the key of the cache.
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
