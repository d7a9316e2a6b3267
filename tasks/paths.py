"""The way from one protocol's rule to another's, one choice at a time.

Rules are dataclasses with a field for each choice in which released evaluations differ, so that any of them
can be taken from either protocol, whatever the others are.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tasks.keypoints.rule import KeypointRule, PairDraw, PairSample
from tasks.metrics.soft_argmax import SoftArgmax
from tasks.propagation.rule import PropagationRule
from zoo.view.released import CornerSquare, OfPixels, OfTokens, ScriptFrame
from zoo.view.views import Letterbox, RaisedFrame, Stretch, Tiles, View, WholeFrame

Rule = KeypointRule | PropagationRule

SIZE = "size of the view"
KIND = "resize and padding"

KEYPOINTS: Mapping[str, tuple[str, ...]] = {
    SIZE: (),
    KIND: (),
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
"""Choices of keypoint correspondence in the order in which they are changed, and their fields."""

PROPAGATION: Mapping[str, tuple[str, ...]] = {
    SIZE: (),
    KIND: (),
    "seed": ("keep_vanished", "every_channel"),
    "neighbourhood": ("radius", "circle"),
    "sources": ("n_last_frames", "topk"),
    "temperature": ("temperature",),
    "decoding": ("nearest",),
    "decimals": ("decimals",),
}
"""The same of mask propagation."""

_FRAMES = (WholeFrame, RaisedFrame, ScriptFrame)


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that two rules make differently.

    Attributes:
        name: What is chosen.
        old: The first rule's way, in words.
        new: The second rule's.
    """

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Steps:
    """What lies between two rules.

    Attributes:
        choices: What they do differently, in a fixed order.
        rules: All rules that are needed, each once.
        path: Places in ``rules``: the first rule, then after each choice; one more than choices.
        alone: For each choice, the first rule with only that choice changed.
        last: For each choice, the second rule with only that choice undone.
    """

    choices: tuple[Choice, ...]
    rules: tuple[Rule, ...]
    path: tuple[int, ...]
    alone: tuple[int, ...]
    last: tuple[int, ...]


def steps_between(first: Rule, second: Rule) -> Steps:
    """The choices in which two rules of one task differ, and the rules between them.

    Of keypoints only the primary share of the box's side is kept: the others change no primary score.

    Raises:
        ValueError: The rules are of two tasks.
    """
    if type(first) is not type(second):
        raise ValueError("expected two rules of one task")
    first, second = _primary(first), _primary(second)
    order = KEYPOINTS if isinstance(first, KeypointRule) else PROPAGATION

    def with_new(names: Collection[str]) -> Rule:
        """The first rule, but for those choices."""
        return _built(order, {name: second if name in names else first for name in order})

    differ = [
        name for name in order if _view_or_fields(first, name, order) != _view_or_fields(second, name, order)
    ]
    if not _sized(first.view, second.view):
        differ = [name for name in differ if name != SIZE]
    rules: list[Rule] = []

    def place(names: Collection[str]) -> int:
        rule = with_new(names if SIZE in differ or KIND not in names else {*names, SIZE})
        if rule not in rules:
            rules.append(rule)
        return rules.index(rule)

    return Steps(
        path=tuple(place(differ[:count]) for count in range(len(differ) + 1)),
        alone=tuple(place([name]) for name in differ),
        last=tuple(place([other for other in differ if other != name]) for name in differ),
        choices=tuple(
            Choice(name, _words(first, name, order), _words(second, name, order)) for name in differ
        ),
        rules=tuple(rules),
    )


def _primary(rule: Rule) -> Rule:
    return replace(rule, alphas=rule.alphas[:1]) if isinstance(rule, KeypointRule) else rule


def _built(order: Mapping[str, tuple[str, ...]], owners: Mapping[str, Rule]) -> Rule:
    """The rule of which each choice is made as its owner does."""
    fields: dict[str, Any] = {
        field: getattr(owners[name], field) for name, names in order.items() for field in names
    }
    view = _composed(owners[KIND].view, owners[SIZE].view)
    return type(owners[KIND])(view=view, **fields)


def _view_or_fields(rule: Rule, name: str, order: Mapping[str, tuple[str, ...]]) -> object:
    """What a rule chooses."""
    if name == SIZE:
        return _size(rule.view)
    if name == KIND:
        return _kind(rule.view)
    return tuple(getattr(rule, field) for field in order[name])


def _sized(first: View, second: View) -> bool:
    """Whether a view can be had of the first one's kind at the second one's size, and the other way round."""
    if isinstance(first, Tiles) or isinstance(second, Tiles):
        return type(first) is type(second)
    return isinstance(first, _FRAMES) == isinstance(second, _FRAMES)


def _size(view: View) -> object:
    """How large a view shows images: in tokens, in pixels of a backbone of 224, or in absolute pixels."""
    if isinstance(view, OfTokens):
        return f"{view.tokens} tokens a side"
    if isinstance(view, OfPixels):
        return f"{view.view.side} px"
    if isinstance(view, CornerSquare):
        return f"{view.side} px"
    if isinstance(view, Letterbox | Stretch):
        return f"the input size x {view.side}/224"
    if isinstance(view, WholeFrame):
        return f"shorter side the input size x {view.short}/224"
    if isinstance(view, RaisedFrame | ScriptFrame):
        return f"shorter side {view.short} px"
    return repr(view)


def _kind(view: View) -> str:
    """How a view shows images, whatever its size, in words."""
    if isinstance(view, OfTokens | OfPixels):
        return _kind(view.view)
    if isinstance(view, Letterbox):
        return f"centred on black, {'Lanczos' if view.lanczos else 'bicubic'}"
    if isinstance(view, Stretch):
        return f"stretched to a square, {'bilinear' if view.bilinear else 'bicubic'}"
    words = {
        CornerSquare: "in the corner of a white square, bicubic",
        WholeFrame: "sides to the nearest multiple, bicubic",
        RaisedFrame: "sides up to a multiple, bicubic",
        ScriptFrame: "longer side down to a multiple, bilinear without anti-aliasing",
    }
    return next((text for known, text in words.items() if isinstance(view, known)), repr(view))


def _composed(kind: View, size: View) -> View:
    """A view that shows images as one does, at the size of another one."""
    if _size(kind) == _size(size):
        return kind
    if isinstance(kind, _FRAMES) and isinstance(size, _FRAMES):
        return replace(kind, short=size.short)
    if isinstance(kind, CornerSquare):
        return CornerSquare(_side(size))
    inner = kind.view if isinstance(kind, OfTokens | OfPixels) else kind
    if not isinstance(inner, Letterbox | Stretch):
        return kind
    square = replace(inner, side=_side(size))
    if isinstance(size, OfTokens):
        return OfTokens(square, size.tokens)
    return OfPixels(square) if isinstance(size, CornerSquare | OfPixels) else square


def _side(view: View) -> int:
    """Side of a square view in pixels, as it is stated."""
    return view.geometry((1, 1)).size[0]


def _words(rule: Rule, name: str, order: Mapping[str, tuple[str, ...]]) -> str:
    """A rule's way of one choice."""
    if name in (SIZE, KIND):
        return str(_view_or_fields(rule, name, order))
    return ", ".join(_value(field, getattr(rule, field)) for field in order[name] if field != "alphas")


def _value(field: str, value: object) -> str:
    """A field's value in words."""
    if isinstance(value, PairDraw):
        return f"{value.per_category} a category, drawn with replacement, seed {value.seed}"
    if isinstance(value, PairSample):
        return f"at most {value.most} a category, drawn, seed {value.seed}"
    if isinstance(value, SoftArgmax):
        where = f"window {value.window}" if value.window is not None else f"kernel {value.sigma:g}"
        return f"beta {value.beta:g}, {where}" if value.window or value.sigma else f"beta {value.beta:g}"
    if isinstance(value, bool):
        words = {
            "inclusive": ("<", "<="),
            "circle": ("square", "circle"),
            "nearest": ("bilinear", "nearest neighbour"),
            "keep_vanished": ("lost objects stay lost", "lost objects are rescued"),
            "every_channel": ("channels of what is left", "a channel an object"),
        }
        return words[field][value]
    if value is None:
        return {"soft": "none: the best place", "draw": "all"}.get(field, "none")
    return {"n_last_frames": f"{value} frames", "topk": f"top {value}", "radius": f"radius {value}"}.get(
        field, str(value)
    )
