"""Charts of the report and of pages as Vega-Lite specifications, with one palette."""
