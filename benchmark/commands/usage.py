"""Command lines that name no command, no option or no fitting value: what is wrong, in one sentence."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from layerboard.benchmark.commands.command import Command
from layerboard.benchmark.forms.option import Option, declared
from layerboard.zoo.errors import InputError, either, likely, shortened

UsageError: Any = typer.BadParameter.__base__  # which Typer keeps in modules of its own


def unknown_command(name: str, commands: Iterable[str]) -> InputError:
    """The error for a name that no command has."""
    close = likely("command", name, [*commands])
    hint = f"did you mean {either(f'`layerboard {each}`' for each in close)}?" if close else ""
    return InputError(f"there is no command {shortened(name)}; {hint or '`layerboard -h` lists all'}")


def usage_reason(
    error: Any,  # noqa: ANN401  # a usage error of Typer
    words: Sequence[str],
    command: Any,  # noqa: ANN401
    commands: Iterable[Command[..., Any]],
) -> InputError:
    """A usage error of Typer as a sentence, with the nearest name of an option, or the line of usage.

    ``words`` name ``command``, an object of typer. An unknown option may be one of the other ``commands``.
    """
    forms = {each.name: {option.name: option for option in declared(each.form)} for each in commands}
    if hasattr(error, "possibilities"):
        return _unknown_option(error.option_name, words, command, forms)
    option = forms.get(" ".join(words), {}).get(getattr(getattr(error, "param", None), "name", ""))
    if option and not error.message:
        name = option.name.upper() if option.positional else (option.also or option.flag).split()[0]
        reason = f"{' '.join(words)} takes {name}, which is missing"
    else:
        reason = error.format_message().removesuffix(".")
    usage = command.get_usage(typer.Context(command, info_name=" ".join(["layerboard", *words])))
    usage = " ".join(usage.split()).replace("Usage", "usage", 1)
    return InputError(f"{reason[:1].lower()}{reason[1:]}; {usage}")


def _unknown_option(
    name: str,
    words: Sequence[str],
    command: Any,  # noqa: ANN401
    forms: Mapping[str, Mapping[str, Option[Any, Any]]],
) -> InputError:
    """The error for an option that the command lacks, with its nearest one, or the commands that have it."""
    flags = [flag for each in command.params for flag in each.opts if flag.startswith("--")]
    known = {flag.removeprefix("--").replace("-", "_"): flag for flag in flags}
    text = name.lstrip("-").replace("-", "_")
    have = [f"`{each}`" for each, options in forms.items() if text in options]
    whole = " ".join(["layerboard", *words])
    if close := likely("option", text, [*known]):
        hint = f"did you mean {either(known[each] for each in close)}?"
    else:
        hint = f"{either(have[:3])} has it" if have else f"`{whole} -h` lists all"
    return InputError(f"{whole} has no option {shortened(name)}; {hint}")
