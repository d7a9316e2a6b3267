"""The package ``benchmark`` that is installed beside ``layerboard``, for ``python -m benchmark``."""
