"""Atomic files, locks, and opening databases."""
