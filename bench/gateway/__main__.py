"""`python -m bench.gateway`: this part alone, with options."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from bench.__main__ import show
from bench.gateway import LOADS, run
from bench.gateway.measuring import Sizes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs: to see that it works")
    parser.add_argument("--only", choices=LOADS, action="append", help="one load; may be repeated")
    parser.add_argument("--responses", type=int, help="how many for memory, e.g. 100000")
    chosen = parser.parse_args()
    sizes = Sizes.quick() if chosen.quick else Sizes()
    sizes = replace(sizes, responses=chosen.responses or sizes.responses)
    missed = 0
    for result in run(sizes, tuple(chosen.only or LOADS)):
        show(result)
        missed += not result.ok
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
