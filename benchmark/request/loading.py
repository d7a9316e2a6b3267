"""Options of loading a backbone that ends after a layer, each declared once."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal, get_args

from benchmark.request import parsers
from benchmark.request.option import Option
from benchmark.request.request import Dtype, InterpolationChoice

Pooling = Literal["auto", "cls", "mean", "grid", "patchwise"]


def layer(value: int | str | None, option: parsers.Of) -> str | None:
    """A number of a block as text, or ``final``; None for the last block."""
    if value is None or value == "final" or (isinstance(value, str) and value.isdecimal()):
        return value if value is None else str(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise option.takes("the number of a block, or 'final'", value)
    return str(value)


@dataclass(frozen=True)
class LoadRequest:
    """Which backbone to load, where it ends, and what it gives; ``benchmark.load`` has these options."""

    name: Option[str | Path, str] = Option(
        ..., "A name, a Hub id, a directory, or a Python object (module:function).", parsers.word
    )
    _: KW_ONLY
    layer: Option[int | str | None, str | None] = Option(
        None, "Block after which it ends, or 'final'.", layer, shown="the last block"
    )
    pooling: Option[Pooling, Pooling] = Option(
        "auto",
        "cls: the class token; mean: of the patch tokens; grid: these in their places; patchwise: of a "
        "ConvNet, their mean after blocks of them were moved into channels; auto: cls if there is one.",
        parsers.choice,
        choices=get_args(Pooling),
    )
    task: Option[str, str] = Option("knn", "Images are shown as this task shows them.", parsers.text)
    protocol: Option[str, str] = Option("standard", "By this protocol.", parsers.text)
    input_size: Option[int | None, int | None] = Option(
        None, "Side in pixels, rounded to the patch size.", parsers.whole, least=1, shown="its own"
    )
    interpolation: Option[InterpolationChoice, InterpolationChoice] = Option(
        "auto",
        "Rule by which position embeddings are fitted to the images.",
        parsers.choice,
        choices=get_args(InterpolationChoice),
    )
    weights: Option[str | Path | None, Path | None] = Option(
        None, "A file or directory of weights in place of its own.", parsers.optional_path
    )
    device: Option[str, str] = Option("auto", "auto, cpu, cuda or cuda:N.", parsers.text)
    dtype: Option[Dtype, Dtype] = Option(
        "float32", "Of the forward.", parsers.choice, choices=get_args(Dtype)
    )
    cache: Option[str | Path | None, Path] = Option(
        None, "What can be computed or downloaded again.", parsers.cache, shown="~/.cache/layerboard"
    )
