"""The mini suite's data: a deterministic renderer of creatures and objects made of parts.

The evaluation datasets have the official layouts and are rendered in pieces: in `write`, `missing_pieces`
lists the missing ones, `render_piece` renders one, and `finish` writes the annotation files. `sample` renders
training images. `layerboard.mini.facts` has classes and counts. ``python -m workshop.render`` packs all.
"""
