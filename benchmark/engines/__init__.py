"""Where the parts of a run are carried out, and what they tell meanwhile."""
