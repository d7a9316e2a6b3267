"""The user's own Python objects, named ``module:name``, and files of weights. Imports nothing heavy."""

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from layerboard.zoo.errors import InputError
from layerboard.zoo.libraries import explained

PART = "#"  # between a file of weights and the label of one of its networks: FILE#student
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def is_reference(text: str) -> bool:
    """Whether a text reads ``module:name``."""
    return _REFERENCE.fullmatch(text) is not None


def split_part(text: str) -> tuple[Path, str]:
    """The path of weights, and the label of the network in them that is named after it; "" if none is."""
    path, (before, mark, label) = Path(text), text.rpartition(PART)
    return (Path(before), label) if mark and not path.exists() and Path(before).exists() else (path, "")


def is_local(text: str) -> bool:
    """Whether a text is a path of this machine, which may end in the label of a network."""
    return bool(text) and split_part(text)[0].exists()


def find_object(reference: str) -> object:
    """The object of a name ``module:name``; None if the module has none.

    The module is looked for in the current directory and among those that are installed. Raises InputError if
    it cannot be imported.
    """
    module, _, name = reference.partition(":")
    with current_directory():
        try:
            return getattr(importlib.import_module(module), name, None)
        except Exception as error:
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing and module.startswith(missing):
                reason = f"there is no module {module} in {Path.cwd()} or among those installed"
                raise InputError(f"{reference}: {reason}.") from error
            broken = explained(error)
            reason = str(error) if missing else f"{type(error).__name__}: {error}"
            if not missing and broken is not None and broken.library != module.partition(".")[0]:
                reason = str(broken)
            raise InputError(f"{reference}: {module} cannot be imported: {reason}.") from error


@contextmanager
def current_directory() -> Iterator[None]:
    """Context in which modules of the current directory can be imported, as by ``python -m``."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path.remove(str(Path.cwd()))
