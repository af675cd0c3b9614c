"""Reading inside one folder and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path, PureWindowsPath

from jianmu.errors import SkillError

__all__ = ["SkillFolder"]


class SkillFolder:
    """A folder whose files can be listed and read; no path, and no symlink, leads out of it.

    Args:
        root: The folder.
        max_bytes: The largest file that is read.

    Raises:
        SkillError: `root` is no folder.
    """

    def __init__(self, root: Path | str, *, max_bytes: int = 262_144) -> None:
        try:
            self.root = Path(root).resolve(strict=True)
        except OSError as error:
            raise SkillError(f"skill folder {str(root)!r} cannot be opened: {error.strerror}") from error
        if not self.root.is_dir():
            raise SkillError(f"skill folder {str(root)!r} is not a folder")
        self._max_bytes = max_bytes

    def files(self) -> list[str]:
        """Return the relative paths of the regular files, with ``/``, sorted; hidden ones are left out."""
        found = []
        for folder, names, files in os.walk(self.root, followlinks=False):
            names[:] = [name for name in names if not name.startswith(".")]
            for file in files:
                path = Path(folder, file)
                if not file.startswith(".") and self._inside(path):
                    found.append(path.relative_to(self.root).as_posix())
        return sorted(found)

    def read(self, path: str) -> str:
        """Return the text of one file.

        Args:
            path: Relative to the folder, with ``/``.

        Raises:
            SkillError: The path leaves the folder, or there is no readable UTF-8 file of at most
                `max_bytes` bytes there.
        """
        target = self._locate(path)
        size = target.stat().st_size
        if size > self._max_bytes:
            raise SkillError(f"{path!r} has {size} bytes, at most {self._max_bytes} are read")
        try:
            return target.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise SkillError(f"{path!r} is not UTF-8 text") from error
        except OSError as error:
            raise SkillError(f"{path!r} cannot be read: {error.strerror}") from error

    def _locate(self, path: str) -> Path:
        windows = PureWindowsPath(path)
        if windows.is_absolute() or windows.drive or windows.root or ".." in windows.parts or "\0" in path:
            raise SkillError(f"{path!r} leaves the skill's folder; give a path relative to it")
        target = self.root / path
        hidden = any(part.startswith(".") for part in Path(path).parts if part != ".")
        if hidden or not self._inside(target):
            raise SkillError(f"{path!r} is no file of this skill; its files: {', '.join(self.files()[:50])}")
        return target.resolve()

    def _inside(self, path: Path) -> bool:
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):  # missing, or a loop of symlinks
            return False
        return real.is_relative_to(self.root) and real.is_file()
