"""What runs have made, compared, joined and handed on to others."""
