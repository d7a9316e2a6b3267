"""Files in the place of weights that are something else: said by what they are."""

import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from layerboard.zoo.errors import InputError, ensure, some
from layerboard.zoo.reading import decoded, open_regular

LONGEST_LIST = 2**22  # maximum bytes of the header that describes the tensors: some 40,000 of them
ADAPTER = "adapter_config.json"  # file of PEFT beside the weights of an adapter
_HEAD = 2**10  # bytes of a file that tell what it is
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
_KINDS = (
    (rb"\s*[\[{]", "a JSON file", "give the file of weights, or the directory that holds its parts"),
    (rb"\x1f\x8b|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!", "a packed file", "unpack it first"),
    (rb"\x89HDF", "a file of HDF5, as Keras and TensorFlow write", "give the weights of the torch version"),
    (rb"GGUF", "a file of GGUF", "give the weights of the torch version"),
    (rb"\x93NUMPY", "a NumPy array", "give the weights of the torch version"),
    (rb"(?s:.{257})ustar", "an archive of tar", "unpack it first"),
)
# Names of tensors of adapters: LoRA, LoHa, LoKr, IA3, VeRA, OFT.
_OF_ADAPTERS = re.compile(r"(^|\.)(lora_|hada_w|lokr_w|ia3_l|vera_lambda|oft_r|oft_blocks)")


@dataclass(frozen=True, slots=True)
class _Listed:
    """A tensor in the header of a safetensors file: where its bytes begin and end."""

    data_offsets: tuple[int, int] = (0, 0)


def refuse_pages(path: Path) -> None:
    """Raise InputError if a file holds what is shown or kept in place of the file that was meant."""
    _refuse(path, _start(path), _PAGES)


def refuse_other_files(path: Path) -> None:
    """Raise InputError with what a file is if that is no weights; files that cannot be read pass."""
    head = _start(path)
    _refuse(path, head, _PAGES + _KINDS)
    is_packed = head[8:9] == b"{" and head[:2] != b"PK"
    if is_packed and path.suffix != ".safetensors":
        raise InputError(f"{path} is a safetensors file; give it a name that ends in .safetensors.")
    if head[:4] != b"PK\x03\x04":
        return
    names = zip_sizes(path)
    if not names:
        return  # cut: reading reports it
    if not any(name.endswith("data.pkl") for name in names):
        raise InputError(f"{path} is a zip archive of {some(names)}; unpack it, and give the weights in it.")
    if path.suffix == ".safetensors":
        raise InputError(f"{path} is a file of torch.save; give it a name that ends in .pth.")


def zip_sizes(path: Path) -> dict[str, int]:
    """Bytes of each file in a zip archive, by its name there; {} if it is none, or cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {info.filename: info.file_size for info in archive.infolist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return {}


def _start(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def _refuse(path: Path, head: bytes, kinds: Sequence[tuple[bytes, str, str]]) -> None:
    for pattern, kind, advice in kinds:
        ensure(not re.match(pattern, head, re.IGNORECASE), f"{path} is {kind}; {advice}.")


def cut_short(path: Path) -> str:
    """Why a file that cannot be read is not whole, as of an unfinished download; "" if unknown."""
    try:
        size = path.stat().st_size
        with open_regular(path) as file:
            length = int.from_bytes(start := file.read(8), "little")
            if not size:
                return "it is empty"
            if start[:4] == b"PK\x03\x04" and not zipfile.is_zipfile(path):
                return "its end is missing, as of an unfinished download"
            if path.suffix != ".safetensors" or not 0 < length < LONGEST_LIST:
                return ""
            listed = decoded(dict[str, _Listed], file.read(length)).values()
        whole = 8 + length + max(each.data_offsets[1] for each in listed)
    except (OSError, ValueError):
        return ""
    return f"only {size:,} of {whole:,} bytes are there, as of an unfinished download" if whole > size else ""


def refuse_adapters(names: Iterable[str], path: Path) -> None:
    """Raise InputError if tensors are those of an adapter, such as LoRA's."""
    if any(_OF_ADAPTERS.search(name) for name in names):
        raise InputError(_adapter(path))


def refuse_without_weights(directory: Path, expected: str) -> NoReturn:
    """Raise InputError for a directory without weights, with what it holds instead."""
    if (directory / ADAPTER).is_file():
        raise InputError(_adapter(directory))
    held = sorted(each.name for each in directory.iterdir() if each.is_file())
    raise InputError(f"{directory} has no weights; expected {expected}, found {some(held, 5) or 'no files'}.")


def _adapter(path: Path) -> str:
    return (
        f"{path} is an adapter (such as LoRA), which changes another network and is none; merge it: "
        "PeftModel.from_pretrained(network, DIRECTORY).merge_and_unload().save_pretrained(NEW)."
    )
