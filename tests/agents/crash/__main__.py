"""`make crash-agent`: the whole proof, for each store, with one call at a time and with several."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .proof import prove

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each store")
    parser.add_argument("--parallel-kills", type=int, default=50, help="of each store, with parallel_tools=8")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--stores", type=lambda text: text.split(","), default="file,sqlite", help="file, sqlite or both"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}")
    wrong = False
    for store in options.stores:
        for kills, parallel in ((options.kills, None), (options.parallel_kills, 8)):
            if not kills:
                continue
            with tempfile.TemporaryDirectory() as folder:
                tally = prove(kills, Path(folder), seed=options.seed, store=store, parallel=parallel)
            print(f"\n{store}, {f'parallel_tools={parallel}' if parallel else 'by default'}")
            print(*tally.lines(), sep="\n", flush=True)
            wrong = wrong or bool(tally.wrong)
    sys.exit(wrong)
