"""The path from one protocol's rule to another's, one choice at a time.

Rules are dataclasses with a field for each choice in which released evaluations differ, so each choice can be
taken from either protocol, independently of the others. The features that a rule uses are not part of the
rule: both ends of a path state them separately.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from layerboard.tasks.keypoints.config import KeypointConfig
from layerboard.tasks.propagation.config import PropagationConfig
from layerboard.zoo.view.released import (
    CornerSquare,
    NativeFrame,
    NativeSquare,
    OfPixels,
    OfTokens,
    ScriptFrame,
    TokenFrame,
)
from layerboard.zoo.view.views import Letterbox, RaisedFrame, Stretch, Tiles, View, WholeFrame

Rule = KeypointConfig | PropagationConfig
Read = Literal["block", "final"]

SIZE = "size of the view"
KIND = "resize and padding"
TAP = "tap"
TRANSFORM = "transform"

_FEATURES: Mapping[str, tuple[str, ...]] = {SIZE: (), KIND: (), TAP: (), TRANSFORM: ()}

# the choices of a task in the order in which they are changed, and their fields
KEYPOINTS = {
    **_FEATURES,
    "keypoints": ("points",),
    "source": ("source",),
    "unit length": ("unit",),
    "search": ("search",),
    "soft arg-max": ("soft",),
    "place said": ("said",),
    "comparison": ("inclusive", "alphas"),
    "pairs": ("draw",),
    "average": ("average",),
}
PROPAGATION = {
    **_FEATURES,
    "seed": ("keep_vanished", "every_channel"),
    "neighbourhood": ("radius", "circle"),
    "sources": ("n_last_frames", "topk"),
    "temperature": ("temperature",),
    "decoding": ("decoding",),
    "decimals": ("decimals",),
}

_FRAMES = (WholeFrame, RaisedFrame, ScriptFrame)
_ALONE = (Tiles, TokenFrame, NativeFrame, NativeSquare)  # kinds whose sizes no other kind can have

# size of images in a view: tokens, pixels of a 224 px backbone, or absolute pixels
_SIZES: Mapping[type[Any], str] = {
    OfTokens: "{view.tokens} tokens a side",
    **dict.fromkeys((OfPixels, CornerSquare), "{side} px"),
    **dict.fromkeys((Letterbox, Stretch), "the input size x {view.side}/224"),
    WholeFrame: "shorter side the input size x {view.short}/224",
    **dict.fromkeys((RaisedFrame, ScriptFrame), "shorter side {view.short} px"),
    TokenFrame: "shorter side {view.short} px for patches of 16, as many tokens for others",
    NativeFrame: "shorter side the input size, at most {view.short} px",
    NativeSquare: "the input size, at most {view.side} px",
}
# kind of a view, independent of its size
_KINDS: Mapping[type[Any], str] = {
    CornerSquare: "in the corner of a white square, bicubic",
    WholeFrame: "sides to the nearest multiple, bicubic",
    TokenFrame: "sides to the nearest multiple, bicubic, as many tokens for any patch",
    NativeFrame: "sides to the nearest multiple, bicubic, at most the input size",
    NativeSquare: "stretched to a square of at most the input size, bicubic",
    RaisedFrame: "sides up to a multiple, bicubic",
    ScriptFrame: "longer side down to a multiple, bilinear without anti-aliasing",
}


def sized(first: View, second: View) -> bool:
    """Whether each of two views can have its own kind at the other one's size."""
    if isinstance(first, _ALONE) or isinstance(second, _ALONE):
        return type(first) is type(second)
    return isinstance(first, _FRAMES) == isinstance(second, _FRAMES)


def size_in_words(view: View) -> str:
    """Size of images in a view."""
    side = _side(view) if isinstance(view, OfPixels | CornerSquare) else None
    return _SIZES.get(type(view), "{view!r}").format(view=view, side=side)


def view_kind(view: View) -> str:
    """Kind of a view, in words."""
    inner = view.view if isinstance(view, OfTokens | OfPixels) else view
    if type(inner) in _KINDS:
        return _KINDS[type(inner)]
    if isinstance(inner, Letterbox):
        return f"centred on black, {'Lanczos' if inner.lanczos else 'bicubic'}"
    if isinstance(inner, Stretch):
        return f"stretched to a square, {'bilinear' if inner.bilinear else 'bicubic'}"
    return repr(inner)


def composed(kind: View, size: View) -> View:
    """A view of the kind of one view, at the size of another."""
    if size_in_words(kind) == size_in_words(size):
        return kind
    if isinstance(kind, _FRAMES) and isinstance(size, _FRAMES):
        return replace(kind, short=size.short)
    inner = kind.view if isinstance(kind, OfTokens | OfPixels) else kind
    if not isinstance(inner, Letterbox | Stretch | CornerSquare):
        return kind
    square = replace(inner, side=_side(size))
    if isinstance(size, OfTokens):
        return OfTokens(square, size.tokens)
    if isinstance(square, CornerSquare):  # it keeps its size in pixels by itself
        return square
    return OfPixels(square) if isinstance(size, CornerSquare | OfPixels) else square


def _side(view: View) -> int:
    """Stated side of a square view in pixels."""
    return view.geometry((1, 1)).size[0]


@dataclass(frozen=True, slots=True)
class End:
    """An end of a path, or a stop on it: a rule, the features it reads, and their transform."""

    rule: Rule
    tap: Read = "block"  # the best of all blocks, or the last block after the final norm
    transform: str = ""  # of `tasks.transforms`; "" for nothing


@dataclass(frozen=True, slots=True)
class ProtocolChoice:
    """A choice in which two ends differ, and the option of each in words."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Steps:
    """The steps between two ends."""

    choices: tuple[ProtocolChoice, ...]  # choices in which they differ, in a fixed order
    stops: tuple[End, ...]  # all rules that are needed, with their features, each once
    path: tuple[int, ...]  # indices in ``stops``: the first end, then the stop after each choice
    alone: tuple[int, ...]  # for each choice, the first end with only that choice changed
    last: tuple[int, ...]  # for each choice, the second end with only that choice undone

    @cached_property
    def scored(self) -> tuple[int, ...]:
        """For each stop, the first stop with the same rule and transform, for which all layers are scored."""
        kinds = [(stop.rule, stop.transform) for stop in self.stops]
        return tuple(kinds.index(kind) for kind in kinds)


def steps_between(first: End, second: End) -> Steps:
    """The choices in which two ends differ, and the stops between them.

    For keypoints only the primary PCK threshold is kept, since the others do not change the primary score; of
    masks only the primary answers to what a source leaves open.

    Raises:
        ValueError: The rules are of two tasks.
    """
    if type(first.rule) is not type(second.rule):
        raise ValueError("expected two rules of one task")
    first, second = _primary(first), _primary(second)
    order = KEYPOINTS if isinstance(first.rule, KeypointConfig) else PROPAGATION
    differ = [
        name
        for name, fields in order.items()
        if _option(first, name, fields) != _option(second, name, fields)
    ]
    if not sized(first.rule.view, second.rule.view):
        differ = [name for name in differ if name != SIZE]
    stops: list[End] = []

    def place(names: Collection[str]) -> int:
        """Index of the stop that is the first end with these choices of the second end."""
        changed = names if SIZE in differ or KIND not in names else {*names, SIZE}
        stop = _built(order, {name: second if name in changed else first for name in order})
        if stop not in stops:
            stops.append(stop)
        return stops.index(stop)

    return Steps(
        path=tuple(place(differ[:count]) for count in range(len(differ) + 1)),
        alone=tuple(place([name]) for name in differ),
        last=tuple(place([other for other in differ if other != name]) for name in differ),
        choices=tuple(
            ProtocolChoice(name, *(_words(end, name, order[name]) for end in (first, second)))
            for name in differ
        ),
        stops=tuple(stops),
    )


def _primary(end: End) -> End:
    if isinstance(end.rule, KeypointConfig):
        return replace(end, rule=replace(end.rule, alphas=end.rule.alphas[:1]))
    return replace(end, rule=replace(end.rule, others=()))


def _built(order: Mapping[str, tuple[str, ...]], owners: Mapping[str, End]) -> End:
    """The rule and features with each choice taken from its owner."""
    fields: dict[str, Any] = {
        field: getattr(owners[name].rule, field) for name, names in order.items() for field in names
    }
    owner = owners[KIND].rule
    rule = replace(owner, view=composed(owner.view, owners[SIZE].rule.view), **fields)
    return End(rule, owners[TAP].tap, owners[TRANSFORM].transform)


def _option(end: End, name: str, fields: tuple[str, ...]) -> object:
    """An end's option for one choice."""
    if fields:
        return [getattr(end.rule, field) for field in fields]
    return {
        SIZE: size_in_words(end.rule.view),
        KIND: view_kind(end.rule.view),
        TAP: "block output, the best" if end.tap == "block" else "last block behind the final norm",
        TRANSFORM: end.transform or "none",
    }[name]


def _words(end: End, name: str, fields: tuple[str, ...]) -> str:
    """An end's option for one choice, in words."""
    if not fields:
        return str(_option(end, name, fields))
    return ", ".join(_value(field, getattr(end.rule, field)) for field in fields if field != "alphas")


_FLAGS: Mapping[str, Any] = {
    "inclusive": ("<", "<="),
    "circle": ("square", "circle"),
    "keep_vanished": ("lost objects stay lost", "lost objects are rescued"),
    "every_channel": ("channels of what is left", "a channel an object"),
    "decoding": {
        "patches": "bilinear",
        "nearest": "nearest neighbour",
        "frame": "bilinear at the frame's size",
        "frame unscaled": "bilinear at the frame's size, not scaled",
    },
}
_NOTHING = {"soft": "none: the best place", "draw": "all"}
_NUMBERS = {"n_last_frames": "{} frames", "topk": "top {}", "radius": "radius {}"}


def _value(field: str, value: Any) -> str:  # noqa: ANN401 - of any field of a config
    """A field's value in words."""
    if value is None:
        return _NOTHING.get(field, "none")
    return _FLAGS[field][value] if field in _FLAGS else _NUMBERS.get(field, "{}").format(value)
