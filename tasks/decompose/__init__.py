"""Steps from one protocol to another, and what each changes."""
