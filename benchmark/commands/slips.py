"""Words of a command line that no command understands: the likely meaning, in one sentence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from layerboard.benchmark.commands.command import Command
from layerboard.benchmark.forms.former import FORMER
from layerboard.benchmark.forms.option import declared
from layerboard.benchmark.forms.parsers import kind_of_name
from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.errors import InputError, either, likely, shortened

_HELP = ("help", "man", "usage")
UsageError: Any = typer.BadParameter.__base__  # which Typer keeps in modules of its own
_KINDS = {float: "a number", int: "a whole number", tuple[int, ...]: "whole numbers"}
_VERSION = ("version", "-V", "-v")
_TRAINING = "in a checkout, `python -m workshop.pretrain` trains the mini backbones"
_MOVED = dict.fromkeys(("pretrain", "train", "fit"), _TRAINING)  # what no command does, and where it is


def require_understood(
    words: Sequence[str],
    command: Any,  # noqa: ANN401
    arguments: Sequence[str],
    commands: Iterable[Command[..., Any]],
) -> None:
    """Raise InputError for a command, an option or a further word that does not exist.

    ``words`` name ``command``, an object of typer; each of the further ``arguments`` that is a value follows
    the name of its option. An unknown option may be one of the other ``commands``.
    """
    require_present((*words, *arguments))
    options = {name: each for each in command.params for name in (*each.opts, *each.secondary_opts)}
    options |= dict.fromkeys(("-h", "--help", "--install-completion", "--show-completion"))
    if {"-h", "--help"} & {*arguments}:
        return
    below = getattr(command, "commands", {})
    positional = [each for each in command.params if each.param_type_name == "argument"]
    free = sum(each.nargs if each.nargs > 0 else len(arguments) for each in positional)
    for argument, is_name in _parted(arguments, options):
        if is_name and argument not in options:
            raise _unknown_option(words, argument, options, commands)
        if not is_name and below:
            raise _unknown_command(words, arguments, argument, below)
        free -= not is_name
        if free < 0:
            raise _further(words, argument, options)


def misused(
    error: Any,  # noqa: ANN401  # a usage error of Typer
    words: Sequence[str],
    command: Any,  # noqa: ANN401
    arguments: Sequence[str],
    commands: Iterable[Command[..., Any]],
) -> InputError:
    """The error, with the line of usage, for a value that is missing or that is no number.

    The arguments are those of `require_understood`.
    """
    options = {
        option.name: option
        for each in commands
        if each.name == " ".join(words)
        for option in declared(each.form)
    }
    option = options.get(getattr(getattr(error, "param", None), "name", ""))
    if hasattr(error, "option_name") and "requires" in error.message:
        said = f"{error.option_name} takes a value, and none follows"
    elif option and not error.message:
        name = option.name.upper() if option.positional else (option.also or option.flag).split()[0]
        said = f"{' '.join(words)} takes {name}, which is missing"
    elif option and option.kind in _KINDS:
        least = "" if option.least is None else f" of at least {option.least}"
        typed = [after for before, after in pairwise(_split(arguments)) if before in error.param.opts]
        value = f"; found {shortened(typed[0])}" if len(typed) == 1 else ""
        said = f"{option.flag} takes {_KINDS[option.kind]}{least}{value}"
    else:
        said = error.format_message().removesuffix(".")
        said = said[:1].lower() + said[1:]
    usage = command.get_usage(typer.Context(command, info_name=" ".join(["layerboard", *words])))
    return InputError(f"{said}; {' '.join(usage.split()).replace('Usage', 'usage', 1)}")


def _split(typed: Iterable[str]) -> list[str]:
    """Words with ``--option=value`` as two."""
    return [part for word in typed for part in (word.split("=", 1) if word[:2] == "--" else [word])]


def require_present(typed: Sequence[str]) -> None:
    """Raise InputError, with the line that does it now, for a command or an option that is gone."""
    parts = _split(typed)
    flags = {part.replace("--no-", "--", 1) for part in parts}
    flags |= {f"{name}={value}" for name, value in pairwise(parts)}
    for former, line in sorted(FORMER.items(), reverse=True):  # options before their command
        command, *options = former.split(" --")
        flag = next((f" --{option}" for option in options if f"--{option}" in flags), "")
        if parts[: len(command.split())] == command.split() and (flag or not options):
            raise InputError(f"`layerboard {command}{flag.replace('=', ' ')}` is `layerboard {line}` now")


def _parted(arguments: Sequence[str], options: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The names of options, and the words that are no value of one; whether each is a name."""
    rest = iter(arguments)
    for argument in rest:
        name, _, attached = argument.partition("=")
        if argument == "--":  # all that follows are words
            yield from ((word, False) for word in rest)
        elif name.startswith("--") or (name.startswith("-") and name[1:2].isalpha()):
            short = name if name.startswith("--") else name[:2]
            yield short, True
            takes_value = not getattr(options.get(short), "is_flag", True)
            if takes_value and not attached and short == argument:
                next(rest, None)
        else:
            yield argument, False


def _unknown_option(
    words: Sequence[str], name: str, options: Mapping[str, Any], commands: Iterable[Command[..., Any]]
) -> InputError:
    if name in _VERSION:
        return InputError(f"there is no option {name}; `layerboard --version` shows the version")
    known = {option.removeprefix("--").replace("-", "_"): option for option in options if option[:2] == "--"}
    text = name.lstrip("-").replace("-", "_")
    if close := likely("option", text, [*known]):
        return InputError(
            f"there is no option {shortened(name)}; did you mean {either(known[each] for each in close)}?"
        )
    every: dict[str, list[str]] = {}
    for command in commands:
        for option in declared(command.form):
            every.setdefault(option.name, []).append(f"`{command.name}`")
    whole = f"`{' '.join(['layerboard', *words, '-h'])}` lists all"
    if words and text in every:
        have = [name for name in every[text] if name != f"`{' '.join(words)}`"][:3]
        verb = "has" if len(have) == 1 else "have"
        others = " and ".join(filter(None, [", ".join(have[:-1]), have[-1]]))
        return InputError(f"{' '.join(words)} has no option {name}; {others} {verb}; {whole}")
    for each in likely("option", text, [*every])[:1]:
        here = f"which {either(every[each][:3])} has" if words else f"that of {either(every[each][:3])}"
        whole = f"did you mean --{each.replace('_', '-')}, {here}? {whole}"
    return InputError(f"there is no option {shortened(name)}; {whole}")


def _unknown_command(
    words: Sequence[str], arguments: Sequence[str], name: str, below: Mapping[str, Any]
) -> InputError:
    whole = " ".join(["layerboard", *words])
    if name in _HELP:
        asked = [each for each in arguments if each in below][:1]
        return InputError(f"`{whole} {name}` is `{' '.join([whole, *asked])} --help`")
    if name in _VERSION:
        return InputError(f"there is no command '{name}'; `layerboard --version` shows the version")
    hint = f"`{whole} -h` lists all"
    kind = kind_of_name(name)
    options = (
        []
        if words
        else [option for each in below["run"].params for option in each.opts if option[:2] == "--"]
    )
    named = {option[2:].replace("-", "_"): option for option in options}
    if name in _MOVED:
        hint = _MOVED[name]
    elif kind and not words:
        hint = f"{name!r} is a {kind[0]}: did you mean `layerboard run --{kind[1]} {name}`?"
    elif name in named:
        hint = f"did you mean `layerboard run {named[name]}`?"
    elif close := likely("command", name, [*below]):
        hint = f"did you mean {either(f'`{whole} {each}`' for each in close)}?"
    elif not words and (_is_suite(name) or Path(name).exists()):
        hint = f"did you mean `layerboard run --{'suite' if _is_suite(name) else 'images'} {name}`?"
    elif named and (close := likely("option", name, [*named])):
        hint = f"did you mean {either(f'`layerboard run {named[each]}`' for each in close)}?"
    elif not words and (close := likely("task", name, ["inside", *(task.name for task in TASKS)])):
        hint = f"did you mean {either(f'`layerboard run --tasks {each}`' for each in close)}?"
    return InputError(f"there is no command {shortened(name)}; {hint}")


def _further(words: Sequence[str], word: str, options: Mapping[str, Any]) -> InputError:
    """The error for a word without an option before it."""
    whole = " ".join(words)
    option = ""
    kind = kind_of_name(word)
    if kind and f"--{kind[1]}" in options:
        option = f"--{kind[1]}"
    elif "--suite" in options and _is_suite(word):
        option = "--suite"
    elif (word.startswith(PREFIX) or Path(word).exists()) and "--images" in options:
        option = "--images"
    elif Path(word).exists() and "--output" in options:
        option = "--output"
    if option:
        hint = f"did you mean `layerboard {whole} {option} {word}`?"
    elif word in (*_HELP, *_VERSION):
        hint = f"`layerboard {whole} --help` shows the help, `layerboard --version` the version"
    else:
        hint = f"values follow the name of an option; `layerboard {whole} -h` lists all"
    return InputError(f"{whole} does not take the word {shortened(word)} by itself; {hint}")


def _is_suite(word: str) -> bool:
    from layerboard.benchmark.plan.suites import SUITES  # its datasets import numpy

    return word in {suite.name for suite in SUITES}
