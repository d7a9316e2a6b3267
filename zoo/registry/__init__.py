"""The registry: from names, as users write them, to backbones."""
