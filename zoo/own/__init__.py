"""Backbones that are not in the registry: timm models and ONNX files."""
