"""Kill an agent at any moment and read from the server what it asked for twice."""
