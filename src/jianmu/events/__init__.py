"""What happened in a run, for whoever listens."""
