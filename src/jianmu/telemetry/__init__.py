"""Sinks for the event bus."""
