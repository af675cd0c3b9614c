"""The suites of checkpointers, one aspect a file."""
