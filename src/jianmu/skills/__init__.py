"""Folders of instructions that a model opens when it needs them."""
