"""Records as pages: blocks of text, tables and figures, and their writers."""
