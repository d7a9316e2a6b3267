"""From a name to a network: files, formats, conversion, and every weight accounted for."""
