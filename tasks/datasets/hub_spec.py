"""Names of datasets on the Hugging Face Hub, and addresses of other machines, which are refused."""

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

from layerboard.zoo.errors import InputError, MissingDataError

PREFIX = "hf:"
SYNTAX = (
    "hf:ID, hf:ID@REVISION or hf:/saved/by/save_to_disk, and behind it ?image=COLUMN&label=COLUMN (also "
    "config=NAME, train=SPLIT, val=SPLIT)"
)
OPTIONS = ("image", "label", "config", "train", "val")
# an address, with its user and password apart; a Path has one slash of s3://
_ADDRESS = re.compile(r"((?:[A-Za-z][\w+.-]+::)*[A-Za-z][\w+.-]+):/+(?:[^/@:]*:(?!\d+/).*@|[^/]*@)?")
_COPY = {
    "s3": "copy it with `aws s3 sync {} FOLDER`",
    "gs": "copy it with `gcloud storage rsync -r {} FOLDER`",
    "file": "leave file:// out",
}


class HubSpec(NamedTuple):
    """A dataset on the Hub, or one saved in a folder, as the user named it."""

    text: str  # what the user wrote
    location: str  # id on the Hub, or path of a saved dataset
    local: bool  # whether the location is a path
    revision: str | None  # revision on the Hub; None for the current one
    options: dict[str, str]  # chosen columns, configuration and splits, by the names in `OPTIONS`


def parse_hub_spec(text: str) -> HubSpec:
    """The dataset that ``hf:ID[@REVISION][?OPTION=VALUE&...]`` or ``hf:PATH[?...]`` names.

    A location is a path when it begins with ``/``, ``.`` or ``~``, or is a folder. Raises InputError.
    """
    wrong = InputError(f"expected {SYNTAX}, found {text!r}")
    if not text.startswith(PREFIX):
        raise wrong
    location, _, query = text[len(PREFIX) :].partition("?")
    try:
        pairs = parse_qsl(query, strict_parsing=True) if query else []
    except ValueError as error:
        raise wrong from error
    options = dict(pairs)
    if len(options) != len(pairs) or not {*options} <= {*OPTIONS}:
        raise InputError(f"expected the options {', '.join(OPTIONS)}, each once, in {text!r}")
    if location.startswith(("/", ".", "~")) or (location and Path(location).is_dir()):
        return HubSpec(text, str(Path(location).expanduser()), True, None, options)
    identity, at, revision = location.partition("@")
    if not identity or (at and not revision):
        raise wrong
    return HubSpec(text, identity, False, revision or None, options)


def require_local(location: str, option: str) -> None:
    """Raise MissingDataError for an address of another machine, such as s3://bucket/photos.

    It says how to have the files here, without the secrets of the address.
    """
    if not _ADDRESS.match(location) or location.startswith(PREFIX):
        return
    with suppress(OSError):  # of a name that is too long for a file, as signed addresses are
        if Path(location).exists():
            return
    address = _ADDRESS.sub(r"\1://", location, count=1).partition("?")[0]
    command = _COPY.get(address.partition(":")[0].lower(), "download {} and unpack it into FOLDER")
    raise MissingDataError(
        f"{option} takes a folder on this machine, found {address}; {command.format(address)}, and give "
        f"{option} FOLDER"
    )
