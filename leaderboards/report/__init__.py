"""The report: one offline HTML page for an output folder, and its figures as files."""
