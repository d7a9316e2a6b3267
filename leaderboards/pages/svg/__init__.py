"""Pictures as SVG text that needs no script, no font file, no style sheet and no other file."""
