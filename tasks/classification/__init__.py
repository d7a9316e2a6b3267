"""Classification of images: k-NN, linear probes and few-shot classification, with their metrics."""
