"""Compact training of the mini backbones, one file per objective.

An objective takes batches of images, labels or captions, independent of their source. `train` runs any of
them, `probe` monitors the quality of the features, and `export` writes a directory in Hugging Face format.
Recipes are those of the papers, scaled to networks of a million weights and runs of minutes.
"""
