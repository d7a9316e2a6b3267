"""Compact training of the mini backbones, one file an objective.

An objective takes batches of images, labels or captions, and knows nothing of where they come from. `train`
runs any of them, `probe` watches what the features are worth, `export` writes a directory in Hugging Face
format. Recipes are the papers', scaled to networks of a million weights and runs of minutes.
"""
