"""Clustering of images and of regions: k-means, purity, NMI and ARI."""
