"""Numbers and several labels of an image, predicted by ridge regression."""
