"""What the tests of the program share: the programs' names, heaps in a folder of the test's own, and what a good refusal
looks like."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TAIYEN = ""
MAKE_HEAP = ""
ZERO_PAGE = bytes(4096)


def run(*arguments, **options):
    return subprocess.run([TAIYEN, *arguments], capture_output=True, text=True, check=False, timeout=120, **options)


def content(file):
    """The pages of a sparse file that are not all zeros, with where they are, and its size. What is a hole may become
    one no more by being read, as space that was allocated for later."""
    size = os.fstat(file.fileno()).st_size
    at = 0
    while at < size:
        try:
            start = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:  # a hole up to the end
            break
        at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
        part = os.pread(file.fileno(), at - start, start)
        for page in range(0, len(part), 4096):
            if part[page : page + 4096] != ZERO_PAGE[: len(part) - page]:
                yield (start + page).to_bytes(8, "little") + part[page : page + 4096]
    yield size.to_bytes(8, "little")


def hashes(folder):
    state = {}
    for name in sorted(os.listdir(folder)):
        if os.path.isdir(os.path.join(folder, name)):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            hashed = hashlib.sha256()
            for part in content(file):
                hashed.update(part)
            state[name] = hashed.hexdigest()
    return state


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="taiyen-cli-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def as_nobody(self):
        """What a command begins with that root's rights are not to help. The folder is open to all then."""
        os.chmod(self.folder, 0o777)
        if os.geteuid() != 0:
            return []
        if not shutil.which("setpriv"):
            self.skipTest("root may read everything, and there is no setpriv")
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run([*words, TAIYEN, "--version"], capture_output=True, check=False).returncode:
            self.skipTest("nobody may not run the program in this folder")
        return words

    def heap(self, how, name="atlas.ty"):
        subprocess.run([MAKE_HEAP, self.path(name), how], check=True, timeout=60)
        return self.path(name)

    def fails(self, code, *arguments, says=()):
        """It fails with this code, says so on stderr as `taiyen: ...`, and nothing on disk changes."""
        before = hashes(self.folder)
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertTrue(result.stderr.startswith("taiyen: "), result.stderr)
        for word in says:
            self.assertIn(word, result.stderr)
        self.assertEqual(hashes(self.folder), before)
        return result

    def succeeds(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout


def main():
    """Runs the tests of the file that is the program: FILE TAIYEN MAKE_HEAP [unittest arguments]"""
    global TAIYEN, MAKE_HEAP
    TAIYEN, MAKE_HEAP = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
