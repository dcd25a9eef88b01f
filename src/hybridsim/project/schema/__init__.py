"""Project files: the schema, its error messages, and line numbers of keys."""
