"""`make crash-agent`: the whole proof."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .proof import prove

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--stores", nargs="+", default=["file", "sqlite"])
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        tally = prove(options.kills, Path(folder), seed=options.seed, stores=options.stores)
    print(*tally.lines(), sep="\n")
    sys.exit(bool(tally.wrong))
