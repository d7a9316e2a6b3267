"""Libraries that are missing or cannot be imported, in one sentence. Imports nothing heavy."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from layerboard.zoo.errors import InputError, first_line, printable

OURS = "layerboard"


class BrokenLibraryError(InputError):
    """A library that cannot be imported; "" where its name is unknown."""

    def __init__(self, sentence: str, library: str = "") -> None:
        super().__init__(sentence)
        self.library = library


def optional(name: str, missing: str) -> ModuleType:
    """A library of an extra; raises BrokenLibraryError, which says ``missing`` if it is not installed."""
    try:
        return import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise BrokenLibraryError(missing) from error
        raise (explained(error) or _broken(name, error)) from error


@contextmanager
def imports_explained() -> Iterator[None]:
    """Raise BrokenLibraryError for an error that the import of a library raised; others pass."""
    try:
        yield
    except Exception as error:
        if (broken := explained(error)) is None:
            raise
        raise broken from error


def explained(error: BaseException) -> BrokenLibraryError | None:
    """The library whose import raised an error, with the reason; None if no import did, or one of ours.

    Libraries that wrap such an error, as transformers does, name it as the cause: the first one is broken.
    """
    if isinstance(error, InputError):
        return error if isinstance(error, BrokenLibraryError) else None
    if error.__cause__ is not None and (broken := explained(error.__cause__)):
        return broken
    library = _importing(error) or _named(error)
    if library == OURS or not (library or isinstance(error, ImportError)):  # one may be raised without a name
        return None
    return _broken(library, error)


def end_command(error: BaseException) -> None:
    """Print what is wrong and exit with 2, if the command line, not a script, imports a broken library."""
    started = Path(sys.argv[0]).stem == OURS or sys.orig_argv[1:3] == ["-m", OURS]
    if started and (broken := explained(error)) is not None:
        with suppress(OSError, AttributeError):  # nobody can read it
            sys.stderr.write(f"error: {broken}\n")
        sys.exit(2)


def is_there(name: str) -> bool:
    """Whether there is a module of that name."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return sys.modules.get(name) is not None


def _broken(library: str, error: BaseException) -> BrokenLibraryError:
    reason, named = printable(first_line(error))[:200], library or "a library"
    with suppress(Exception):  # it is absent, or its metadata are damaged, which raises all kinds of errors
        named = f"{library} {version(library)}"
    return BrokenLibraryError(
        f"{named} cannot be imported ({reason}); `layerboard check` says which versions are needed", library
    )


def _importing(error: BaseException) -> str:
    """The library whose module was being imported when an error was raised; "" for ours or none."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__) if frame.f_code.co_name == "<module>"]
    name = str(frames[-1].f_globals.get("__name__")).partition(".")[0] if frames else ""
    return "" if name in (OURS, "__main__") else name


def _named(error: BaseException) -> str:
    """The library that an error names, as the one that is missing or whose file is no Python; "" for none."""
    if isinstance(error, SyntaxError) and (file := Path(error.filename or "")).is_file():
        return file.parent.name if file.stem == "__init__" else file.stem
    return (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
