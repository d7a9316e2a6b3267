"""In-context segmentation: memories of labelled images, votes, and protocols."""
