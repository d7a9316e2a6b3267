"""The report: one offline HTML page of an output folder, and its figures as files."""
