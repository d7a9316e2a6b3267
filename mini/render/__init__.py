"""The mini suite's data: a deterministic renderer of creatures and objects made of parts.

The evaluation datasets come in the official layouts and in pieces: of `write`, `missing_pieces` says
which are not there, `render_piece` renders one, `finish` writes the annotation files. `sample` renders
training images; `counts` says how much each dataset holds.
"""
