"""From a game of many players to the tree of one."""
