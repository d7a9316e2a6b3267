"""Numbers of the analyses: of attention, its offsets and overlap with objects, and of spectra."""
