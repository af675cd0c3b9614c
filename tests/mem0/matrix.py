"""Run these tests against every supported version of mem0, each in an environment of its own.

    python tests/mem0/matrix.py [--folder DIR] [VERSION ...]

An environment that is already there is used again. Both local vector stores are installed in each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

VERSIONS = ["==1.0.8", "==1.0.11", "==2.0.0", "<3"]
TOOLS = ["chromadb", "pytest>=9", "pytest-asyncio", "pytest-timeout", "pytest-randomly", "hypothesis"]
ROOT = Path(__file__).parents[2]


def environment(folder: Path, wanted: str) -> Path:
    home = folder / ("newest" if wanted.startswith("<") else wanted.strip("="))
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-e", str(ROOT), f"mem0ai{wanted}", *TOOLS]
        subprocess.run(install, check=True)
        (home / "ready").touch()
    return python


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv-mem0")
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    options = parser.parse_args()
    lines, failed = [], False
    for wanted in options.versions:
        python = environment(options.folder, wanted)
        shown = subprocess.run(
            [python, "-c", "from importlib.metadata import version as v; print(v('mem0ai'), v('chromadb'))"],
            check=True, capture_output=True, text=True,
        ).stdout.split()  # fmt: skip
        run = subprocess.run(
            [python, "-m", "pytest", "-q", "tests/mem0"], cwd=ROOT, capture_output=True, text=True
        )
        failed = failed or run.returncode != 0
        if run.returncode:
            print(run.stdout[-20_000:], run.stderr[-2_000:])
        lines.append(f"mem0ai {shown[0]} (chromadb {shown[1]}): {run.stdout.strip().splitlines()[-1]}")
        print(lines[-1], flush=True)
    print("\n".join(["", "mem0 matrix", *lines]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
