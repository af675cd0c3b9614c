"""What do I know: facts that outlive the conversation."""
