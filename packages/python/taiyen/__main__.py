"""`python -m taiyen`: the command-line tool, where it is installed."""

import os
import shutil
import sys


def main():
    """Becomes the command-line tool; says what to do where there is none."""
    beside = os.path.join(os.path.dirname(sys.executable), "taiyen")
    tool = beside if os.access(beside, os.X_OK) else shutil.which("taiyen")
    if tool is None:
        sys.exit("taiyen: the command-line tool is not part of this package, and no program `taiyen` is on the PATH. "
                 "Install it from the source tree: make install")  # fmt: skip
    os.execv(tool, [tool, *sys.argv[1:]])


if __name__ == "__main__":
    main()
