"""The thirty-second proof."""
