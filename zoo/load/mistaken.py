"""What lies in the place of weights: pages and pointers, adapters, directories without any."""

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from layerboard.zoo.errors import InputError, ensure, some
from layerboard.zoo.reading import open_regular

ADAPTER = "adapter_config.json"  # file of PEFT beside the weights of an adapter
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


def zip_sizes(path: Path) -> dict[str, int]:
    """Bytes of each file in a zip archive, by its name there; {} if it is none, or cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {info.filename: info.file_size for info in archive.infolist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return {}


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
