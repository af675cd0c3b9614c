"""The parts of the contract of long-term memories."""
