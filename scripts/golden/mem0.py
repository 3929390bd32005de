"""Makes the golden files of Mem0 anew: python3 scripts/golden/mem0.py [DIRECTORY]   (Default: test/golden/mem0)

Each release is installed by pip without what it depends on: its storage module needs Python alone. The file of the
TypeScript package is made by mem0_npm.mjs.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# One release of each schema that was ever published.
RELEASES = {
    "0.0.9": "prev_value, new_value, timestamp",
    "0.1.40": "old_memory, new_memory, new_value, created_at, updated_at",
    "0.1.102": "and actor_id, role, without new_value",
    "2.2.1": "and the table of messages",
}


def run(script, *arguments):
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, HERE / script, *arguments], check=True, env=env)


def make(target, root):
    storages = {}
    for release in RELEASES:
        home = root / release
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--root-user-action=ignore", "--target", home]
        subprocess.run([*pip, f"mem0ai=={release}"], check=True)
        storages[release] = home / "mem0/memory/storage.py"
        run("mem0_write.py", storages[release], target / f"mem0-{release}.sqlite3")
    # A file that two releases upgraded, one after the other, as a user's would be.
    upgraded = target / "mem0-upgraded.sqlite3"
    for turn, release in enumerate(("0.0.9", "0.1.40", "2.2.1")):
        run("mem0_write.py", storages[release], upgraded, str(turn))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent / "test/golden/mem0"
    target.mkdir(exist_ok=True)
    for old in target.glob("mem0-[0-9u]*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as root:
        make(target, Path(root))
