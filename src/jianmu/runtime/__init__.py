"""Behaviour trees that resume exactly."""
