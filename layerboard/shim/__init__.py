"""What an install puts beside ``layerboard`` as ``benchmark``, for ``python -m benchmark``."""
