"""State, memory and tools become a prompt that fits."""
