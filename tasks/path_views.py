"""Size and kind of a view, as two choices that can be changed one at a time."""

from dataclasses import replace

from zoo.view.released import CornerSquare, OfPixels, OfTokens, ScriptFrame
from zoo.view.views import Letterbox, RaisedFrame, Stretch, Tiles, View, WholeFrame

_FRAMES = (WholeFrame, RaisedFrame, ScriptFrame)


def sized(first: View, second: View) -> bool:
    """Whether a view can be had of the first one's kind at the second one's size, and the other way round."""
    if isinstance(first, Tiles) or isinstance(second, Tiles):
        return type(first) is type(second)
    return isinstance(first, _FRAMES) == isinstance(second, _FRAMES)


def size_of(view: View) -> object:
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


def kind_of(view: View) -> str:
    """How a view shows images, whatever its size, in words."""
    if isinstance(view, OfTokens | OfPixels):
        return kind_of(view.view)
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


def composed(kind: View, size: View) -> View:
    """A view that shows images as one does, at the size of another one."""
    if size_of(kind) == size_of(size):
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
