"""Late interaction: each word of a question looks for its nearest word in a text."""
