"""Where am I: one snapshot per tick."""
