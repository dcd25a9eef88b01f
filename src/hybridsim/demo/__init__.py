"""The demonstration: a small recorded mechanism, fitted without any preparation."""
