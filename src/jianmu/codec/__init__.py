"""Typed values to plain JSON data and back, exactly."""
