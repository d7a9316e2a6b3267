"""Everything that runs: from a request, by passes and scores, to pages; and every command."""
