"""Where am I: one snapshot per tick."""

from jianmu.memory.checkpoint.envelope import extract_checkpoint_payload as extract_checkpoint_payload
from jianmu.memory.checkpoint.envelope import make_checkpoint_envelope as make_checkpoint_envelope

__all__ = ["extract_checkpoint_payload", "make_checkpoint_envelope"]
