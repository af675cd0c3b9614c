"""Chat models and the agent built on them."""
