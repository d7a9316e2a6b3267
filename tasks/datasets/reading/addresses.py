"""Addresses of other machines, such as s3://bucket/photos, which are refused."""

import re
from pathlib import Path

from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.zoo.errors import MissingDataError

# an address, with its user and password apart; a Path has one slash of s3://
_ADDRESS = re.compile(r"((?:[A-Za-z][\w+.-]+::)*[A-Za-z][\w+.-]+):/+(?:[^/@:]*:(?!\d+/).*@|[^/]*@)?")
_COPY = {
    "s3": "copy it with `aws s3 sync {} FOLDER`",
    "gs": "copy it with `gcloud storage rsync -r {} FOLDER`",
    "file": "leave file:// out",
}


def _is_address(location: str) -> bool:
    try:
        is_elsewhere = _ADDRESS.match(location) and not location.startswith(PREFIX)
        return bool(is_elsewhere) and not Path(location).exists()
    except OSError:  # a name that is too long for a file, as signed addresses are
        return True


def shown_location(location: str) -> str:
    """A path as it is; an address of another machine, such as s3://bucket/photos, without its secrets."""
    if not _is_address(location):
        return location
    return _ADDRESS.sub(r"\1://", location, count=1).partition("?")[0]


def require_local(location: str, option: str) -> None:
    """Raise MissingDataError for an address of another machine, with how to have its files here."""
    if not _is_address(location):
        return
    address = shown_location(location)
    command = _COPY.get(address.partition(":")[0].lower(), "download {} and unpack it into FOLDER")
    raise MissingDataError(
        f"{option} takes a folder on this machine, found {address}; {command.format(address)}, and give "
        f"{option} FOLDER"
    )
