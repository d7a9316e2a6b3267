"""Numbers of the analyses: of attention, of its overlap with objects, and of spectra."""
