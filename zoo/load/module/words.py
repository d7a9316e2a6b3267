"""What was found out about somebody's network, in words."""

from collections.abc import Callable

from zoo.errors import shortened
from zoo.load.module.blocks import Blocks
from zoo.load.module.told import Images
from zoo.load.module.trial import Trial
from zoo.look.layout import WORDS
from zoo.spec import BackboneSpec


def headline(spec: BackboneSpec, trial: Trial, blocks: Blocks) -> str:
    """The line that says what was found: blocks, tokens, grid, channels, norm."""

    def joined(word: Callable[[int], str], numbers: list[int]) -> str:
        return "/".join(word(number) for number in dict.fromkeys(numbers))

    grids = joined(lambda side: f"{side}x{side}", [one.side for one in trial.readings[1:]])
    strides = joined(str, [stage.stride for stage in spec.stages])
    widths = joined(str, [stage.width for stage in spec.stages])
    tokens = f"{spec.prefix_tokens} prefix {'token' if spec.prefix_tokens == 1 else 'tokens'}"
    norm = f"final norm net.{trial.final_norm}" if trial.final_norm else "no final norm"
    count = f"{spec.depth} {'block' if spec.depth == 1 else 'blocks'}"
    return f"{count} of {blocks.words}, {tokens} + {grids} grid of patch {strides}, {widths} channels, {norm}"


def details(
    spec: BackboneSpec, trial: Trial, images: Images, class_token: str, told: dict[str, bool]
) -> list[str]:
    """Where each fact is from, and what it means."""
    layouts = " then ".join(dict.fromkeys(WORDS[one.layout] for one in trial.readings))
    mean, std = (", ".join(f"{value:.4g}" for value in one) for one in (spec.mean, spec.std))
    size, normalisation = images.source
    lines = [
        f"blocks {'as told' if told['blocks'] else 'found'}; they pass on {layouts}",
        f"images of {spec.input_size} px ({size}); mean ({mean}) and std ({std}) ({normalisation})",
    ]
    if trial.of_tokens and spec.prefix_tokens:
        what = "a class token" if spec.has_cls else "no class token"
        lines.append(f"the first prefix token is {what} ({class_token})")
    if not told["norm"] and not trial.final_norm:
        lines.append("no norm was given what the last block gives; final_norm= names one")
    if trial.other_sizes:
        lines.append(f"images of other sizes: none, {shortened(trial.other_sizes)}")
    return lines
