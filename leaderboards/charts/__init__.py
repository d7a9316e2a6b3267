"""Charts as Vega-Lite specifications, of the report and of pages, with one palette."""
