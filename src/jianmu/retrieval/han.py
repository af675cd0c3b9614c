"""Traditional and simplified forms of Chinese characters, one by one."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["HanForms"]


class HanForms:
    """Rewrites text in the other form, so that 喜歡 finds 喜欢 and the reverse; characters only, no idioms.

    The table is read at construction (about 3 ms).
    """

    def __init__(self) -> None:
        lines = (files("jianmu.retrieval") / "han_variants.txt").read_text("utf-8").split("\n")
        pairs = [line for line in lines if line and line[0] != "#"]
        self._simplified = {ord(pair[0]): pair[1] for pair in pairs}
        self._traditional = {ord(pair[1]): pair[0] for pair in pairs if pair[2:] == "="}

    def simplified(self, text: str) -> str:
        """`text` with every traditional character in its simplified form."""
        return text.translate(self._simplified)

    def traditional(self, text: str) -> str:
        """`text` with every simplified character in its usual traditional form."""
        return text.translate(self._traditional)
