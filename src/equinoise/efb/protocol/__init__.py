"""One trial at a time: what server and user hold, and what they send each other."""
