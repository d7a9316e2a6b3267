"""The sections of a leaderboard, one file each: what a board says, as blocks."""
