"""Libraries that are missing or cannot be imported, in one sentence. Imports nothing heavy."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from layerboard.zoo.errors import InputError, first_line, printable

CHECK = "`layerboard check` tells more"
OURS = "layerboard"
TORCH = "torch"  # libraries of compiled operators fit one version and build of it


class BrokenLibraryError(InputError):
    """A library that is missing, or is installed and cannot be imported; "" where its name is unknown."""

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
    """What is wrong with the library whose import raised an error; None if no import did, or one of ours.

    Libraries that wrap such an error, as transformers does, name it as the cause: the first one is broken.
    """
    if isinstance(error, InputError):
        return error if isinstance(error, BrokenLibraryError) else None
    if error.__cause__ is not None and (broken := explained(error.__cause__)):
        return broken
    importing = _importing(error)
    name = _top(error.name or "") if isinstance(error, ImportError) else ""
    if isinstance(error, ModuleNotFoundError) and name not in ("", OURS) and not is_there(name):
        needs = f", and {named(importing)} needs it" if importing else ""
        return BrokenLibraryError(
            f"{name} is not installed{needs}; install it with: pip install {_distribution(name)}; {CHECK}",
            name,
        )
    culprit = importing or name or (_of_file(error.filename) if isinstance(error, SyntaxError) else "")
    if not culprit and isinstance(error, ImportError):  # raised by hand, in a library's own words
        return BrokenLibraryError(f"a library is missing: {_reason(error)}; {CHECK}")
    return None if culprit in ("", OURS) else _broken(culprit, error)


def end_command(error: BaseException) -> None:
    """Print what is wrong and exit with 2, if the command line, not a script, imports a broken library."""
    started = Path(sys.argv[0]).stem == OURS or sys.orig_argv[1:3] == ["-m", OURS]
    if started and (broken := explained(error)) is not None:
        with suppress(OSError, AttributeError):  # nobody can read it
            sys.stderr.write(f"error: {broken}\n")
        sys.exit(2)


def named(name: str) -> str:
    """A library with its version, if that is known."""
    return f"{name} {installed(name)}".rstrip()


def installed(name: str) -> str:
    """Version of the distribution that has a module; "" if it is unknown."""
    try:
        return version(_distribution(name))
    except Exception:  # damaged metadata raise all kinds of errors
        return ""


def requirements(distribution: str, extra: str = "") -> list[tuple[str, str]]:
    """What a distribution needs here, or what one of its extras adds: names and versions (``>=2``)."""
    try:
        from packaging.requirements import Requirement

        every = [Requirement(line) for line in requires(distribution) or ()]
    except Exception:  # damaged metadata raise all kinds of errors
        return []

    def applies(requirement: Requirement, of_extra: str) -> bool:
        return requirement.marker is None or requirement.marker.evaluate({"extra": of_extra})

    asked = [each for each in every if applies(each, extra) and not (extra and applies(each, ""))]
    return [(each.name, str(each.specifier)) for each in asked]


def _broken(name: str, error: BaseException) -> BrokenLibraryError:
    """What is wrong with a library that is there, as far as its metadata tell, and what to do."""
    reason = printable(_reason(error))
    misfits = (other for other, wanted in requirements(_distribution(name)) if not fits(other, wanted))
    needs_torch = name != TORCH and (name.startswith(TORCH) or _needs(name, TORCH))
    partner = next(misfits, TORCH if needs_torch else "")
    if sys.flags.optimize > 1:
        without = "without docstrings, which PYTHONOPTIMIZE=2 (python -OO) leaves out"
        wrong = f"cannot be imported {without} ({reason}); unset it"
    elif isinstance(error, Warning):
        unset = "unset PYTHONWARNINGS, or leave out -W"
        wrong = f"cannot be imported where warnings are errors ({reason}); {unset}"
    elif not partner or not installed(partner):
        again = f"install it again with what it needs: pip install --force-reinstall {_distribution(name)}"
        wrong = f"is installed and cannot be imported ({reason}); {again}"
    else:
        where = ", from the same index as torch" if partner == TORCH else ""
        instead = "" if _needs(OURS, name) else f", or uninstall {name}"
        fitting = f"install the {name} that is made for {named(partner)}{where}{instead}"
        wrong = f"does not fit {named(partner)} ({reason}); {fitting}"
    return BrokenLibraryError(f"{named(name)} {wrong}; {CHECK}", name)


def _reason(error: BaseException) -> str:
    """The first line of an error's message, of readable length."""
    line = first_line(error)
    return line if len(line) <= 200 else f"{line[:200]}..."


def _importing(error: BaseException) -> str:
    """The library whose module was being imported when an error was raised; "" for ours or none."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    modules = [
        _top(str(each.f_globals.get("__name__"))) for each in frames if each.f_code.co_name == "<module>"
    ]
    last = modules[-1] if modules else ""
    return "" if last in (OURS, "__main__") else last


def _of_file(path: str | None) -> str:
    """The library that a file belongs to; "" if it is not below a folder of modules."""
    for folder in map(Path, sys.path):
        if path and folder.is_absolute() and Path(path).is_relative_to(folder):
            return Path(path).relative_to(folder).parts[0].removesuffix(".py")
    return ""


def _top(module: str) -> str:
    return module.partition(".")[0]


def is_there(name: str) -> bool:
    """Whether there is a module of that name."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return sys.modules.get(name) is not None


def _distribution(name: str) -> str:
    """The distribution that has a module, which often has its name."""
    try:
        version(name)
    except PackageNotFoundError:
        known = {"faiss": "faiss-cpu", "PIL": "Pillow", "sklearn": "scikit-learn", "yaml": "PyYAML"}
        return known.get(name) or (_distributions(*sys.path).get(name) or [name.replace("_", "-")])[0]
    except Exception:  # damaged metadata raise all kinds of errors
        return name
    return name


@cache
def _distributions(*folders: str) -> Mapping[str, list[str]]:
    """The distributions of every module in the folders of ``sys.path``: to read all takes half a second."""
    del folders
    return packages_distributions()


def _needs(name: str, other: str) -> bool:
    """Whether a library needs another one, by its metadata."""
    from packaging.utils import canonicalize_name

    mine = {canonicalize_name(needed) for needed, _ in requirements(_distribution(name))}
    return canonicalize_name(_distribution(other)) in mine


def fits(name: str, wanted: str) -> bool:
    """Whether the installed version is among the wanted ones; true if it is unknown."""
    from packaging.specifiers import SpecifierSet

    try:
        return SpecifierSet(wanted).contains(version(name), prereleases=True)
    except Exception:  # not installed, or damaged metadata
        return True
