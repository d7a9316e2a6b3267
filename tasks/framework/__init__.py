"""What all tasks share: the class `Task`, entries, protocols, what they are fed, and results by item."""
