"""Writers of pages: Markdown, CSV, LaTeX, figures beside them, and which pages there are."""
