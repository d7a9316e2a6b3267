"""Numbers that several analyses share: of attention, and of spectra."""
