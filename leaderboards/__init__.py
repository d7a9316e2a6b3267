"""Records, tables and pages."""
