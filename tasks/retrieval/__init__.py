"""Retrieval of images: of landmarks (Revisited Oxford and Paris) and of instances, with their metrics."""
