"""Similarity of representations: CKA between layers and backbones, and the drift of one from another."""
