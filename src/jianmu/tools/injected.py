"""Arguments that the program gives and the model neither sees nor sets."""

from __future__ import annotations

__all__ = ["Injected"]


class Injected:
    """Marks a parameter of a `@tool` function: ``user: Annotated[User, Injected]``.

    Its value comes from `FunctionTool.bind`, under the parameter's name.
    """
