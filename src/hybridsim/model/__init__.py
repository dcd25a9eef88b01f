"""The mechanism: joint types, topology, the `Model` record, the builder and the validation of model descriptions."""
