"""The sections of a leaderboard, one file each: from a board to blocks."""
