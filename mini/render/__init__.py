"""The mini suite's data: a deterministic renderer of creatures and objects made of parts.

The seven evaluation datasets come in the official layouts and in pieces: ``missing_pieces`` says which are
not there, ``render_piece`` renders one, ``finish`` writes the annotation files. ``sample_image`` renders
training images; ``counts`` says how much each dataset holds.
"""

from mini.render.sample import RenderedImage, sample_image
from mini.render.seeds import MINI_VERSION
from mini.render.templates import TEMPLATES, class_names
from mini.render.write import Piece, finish, missing_pieces, render_piece

__all__ = [
    "MINI_VERSION",
    "TEMPLATES",
    "Piece",
    "RenderedImage",
    "class_names",
    "finish",
    "missing_pieces",
    "render_piece",
    "sample_image",
]
