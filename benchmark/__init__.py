"""The benchmark itself: from a request over passes and scores to pages, and every command."""
