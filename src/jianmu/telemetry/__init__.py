"""Sinks for the event bus."""

from __future__ import annotations

from jianmu.telemetry.jsonl import JsonlSink

__all__ = ["JsonlSink"]
