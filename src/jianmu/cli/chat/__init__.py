"""A terminal chat that remembers, and goes on where it was."""
