"""The scalar graph, its arrays and the passes that optimize it."""
