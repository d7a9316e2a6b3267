"""Options of functions that are no commands, and what a Python call has beside a command's options."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from benchmark.request import parsers
from benchmark.request.option import Option
from benchmark.request.request import Request

CkaEstimator = Literal["unbiased", "biased", "paper"]
LayoutChoice = Literal["tokens", "tokens-first", "maps", "cells"]

Texts = str | Sequence[str]
Three = Sequence[float] | None


@dataclass(frozen=True)
class RunCall(Request):
    """Options of a run, and whether the call shows how far it is."""

    _: KW_ONLY
    progress: Option[bool | None, bool | None] = Option(
        None,
        "Show bars and what is found; of the Python call alone.",
        parsers.optional_switch,
        shown="in a notebook or a terminal",
    )

    @property
    def request(self) -> Request:
        """The options that the command has, too."""
        return Request(**{one.name: getattr(self, one.name) for one in fields(Request)})


@dataclass(frozen=True)
class CkaCall:
    """What `benchmark.cka` compares."""

    first: Option[Any, Any] = Option(
        ..., "An array [samples ...], an .npy file, or a backbone that was run.", parsers.anything
    )
    second: Option[Any, Any] = Option(..., "Another one of the same kind.", parsers.anything)
    _: KW_ONLY
    output: Option[str | Path, Path] = Option(
        "results", "Of backbones: folder of their records.", parsers.path
    )
    dataset: Option[str | None, str | None] = Option(
        None, "Of backbones: on which images.", parsers.text, shown="those that there are, if they are of one"
    )
    pooling: Option[str | None, str | None] = Option(
        None, "Of backbones: cls, mean or patch.", parsers.text, shown="the first of these that was compared"
    )
    estimator: Option[CkaEstimator, CkaEstimator] = Option(
        "unbiased", "Of arrays: which HSIC.", parsers.choice, choices=get_args(CkaEstimator)
    )
    batch_size: Option[int | None, int | None] = Option(
        None, "Of arrays: samples of a batch.", parsers.whole, least=4, shown="all"
    )


@dataclass(frozen=True, kw_only=True)
class ListCall:
    """Which backbones `benchmark.list_backbones` gives, as the filters of the command ``list``."""

    family: Option[Texts, tuple[str, ...]] = Option(
        (), "Backbones of a family (dino, clip, dinov2, ...).", parsers.names, shown="all"
    )
    supervision: Option[str | None, str | None] = Option(
        None, "Part of what they learned from: images, texts, labels, ...", parsers.text, shown="any"
    )
    licence: Option[str | None, str | None] = Option(
        None,
        "Part of the licence: apache, mit, cc-by-nc, ...; commercial: those alone whose names allow it.",
        parsers.text,
        shown="any",
    )
    max_parameters: Option[str | int | None, str | None] = Option(
        None, "Most weights: 100M, 1.2G.", parsers.number_text, shown="any number"
    )
    gated: Option[bool | None, bool | None] = Option(
        None,
        "Only those whose terms must be accepted, or only the others.",
        parsers.optional_switch,
        shown="both",
    )


@dataclass(frozen=True)
class ModuleCall:
    """A network of somebody's own, and what is known of it."""

    net: Option[Any, Any] = Option(
        ..., "Any torch.nn.Module whose forward takes a batch of images.", parsers.anything
    )
    _: KW_ONLY
    name: Option[str | None, str | None] = Option(
        None, "Name in tables.", parsers.text, shown="that of its class"
    )
    blocks: Option[Any, Any] = Option(
        None,
        "Its residual blocks: a ModuleList or Sequential of it, a list of its modules, or a dotted path such "
        "as 'layers.*.blocks'.",
        parsers.anything,
        shown="the longest row of repeated modules, which is printed",
    )
    final_norm: Option[Any, Any] = Option(
        None,
        "Norm after the last block: a module of it or its dotted path; False for none.",
        parsers.anything,
        shown="the norm that is given what the last block gives",
    )
    image_size: Option[int | None, int | None] = Option(
        None,
        "Side of its square images in pixels.",
        parsers.whole,
        least=1,
        shown="its configuration's, or 224",
    )
    family: Option[str, str] = Option("other", "Group in tables, any word.", parsers.text)
    supervision: Option[str, str] = Option("unknown", "What it learned from, in a few words.", parsers.text)
    data: Option[str, str] = Option("unknown", "What it was trained on.", parsers.text)
    licence: Option[str, str] = Option("unknown", "Licence of its weights.", parsers.text)
    mean: Option[Three, Any] = Option(
        None,
        "Mean of its input, red, green, blue, for pixels from 0 to 1.",
        parsers.anything,
        shown="its pretrained_cfg's, or ImageNet's",
    )
    std: Option[Three, Any] = Option(
        None, "Standard deviation of the same.", parsers.anything, shown="as of mean"
    )
    layout: Option[LayoutChoice | None, LayoutChoice | None] = Option(
        None,
        "What its blocks pass on: [batch tokens dim], [tokens batch dim], [batch dim height width] or [batch "
        "height width dim].",
        parsers.choice,
        choices=get_args(LayoutChoice),
        shown="found by experiment",
    )
    prefix_tokens: Option[int | None, int | None] = Option(
        None, "Tokens before the patches.", parsers.whole, least=0, shown="found by experiment"
    )
    class_token: Option[bool | None, bool | None] = Option(
        None,
        "Whether the first prefix token is a class token.",
        parsers.optional_switch,
        shown="whether it has a cls_token, or else yes",
    )
    verbose: Option[bool, bool] = Option(True, "Print what was found.", parsers.switch)
