"""The user's own Python objects, named ``module:name``, and files of weights. Imports nothing heavy."""

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from layerboard.zoo.errors import InputError

PART = "#"  # between a file of weights and the label of one of its networks: FILE#student
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def is_reference(text: str) -> bool:
    """Whether a text reads ``module:name``."""
    return _REFERENCE.fullmatch(text) is not None


def split_part(text: str) -> tuple[Path, str]:
    """The path of weights, and the label of the network in them that is named after it; "" if none is."""
    path, (before, mark, label) = Path(text), text.rpartition(PART)
    return (Path(before), label) if mark and not path.exists() and Path(before).exists() else (path, "")


def find_object(reference: str) -> object:
    """The object of a name ``module:name``; None if the module has none.

    The module is looked for in the current directory and among those that are installed. Raises InputError if
    it cannot be imported.
    """
    module, _, name = reference.partition(":")
    with current_directory():
        try:
            return getattr(importlib.import_module(module), name, None)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise InputError(f"{reference}: {module} cannot be imported: {error}.") from error
            raise InputError(
                f"{reference}: there is no module {module} in {Path.cwd()} or among those installed."
            ) from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"{reference}: {module} cannot be imported: {reason}.") from error


@contextmanager
def current_directory() -> Iterator[None]:
    """Context in which modules of the current directory can be imported, as by ``python -m``."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path.remove(str(Path.cwd()))
