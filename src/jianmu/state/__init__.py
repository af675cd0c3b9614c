"""Typed state with reducers."""
