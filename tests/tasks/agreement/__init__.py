"""How far each metric is from its reference, for the golden tests and for docs/explanation/conformance.md."""
