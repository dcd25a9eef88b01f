"""The mechanism: joint types, topology, the Model record, the builder and its checks."""
