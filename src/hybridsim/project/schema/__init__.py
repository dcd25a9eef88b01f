"""Project files: schema, error messages, and line numbers of keys."""
