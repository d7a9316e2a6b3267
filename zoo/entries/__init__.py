"""Backbone entries, one file a family; frozen data."""
