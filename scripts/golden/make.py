"""Makes the golden files anew: python3 scripts/golden/make.py [DIRECTORY]   (Default: test/golden)

Each release goes into a virtual environment of its own in a temporary directory, by pip.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).parent
CURRENT = "cubeloop[sqlite]==0.15.3"
# One release of each schema that was ever published, and the last before the package was renamed.
OLD = {
    "0.1.0": "messages and extra",
    "0.6.0": "and pending requests",
    "0.7.0": "and their run ids (v3)",
    "0.9.0": "and runs (v4)",
    "0.13.6": "and answers",
}
MIXED_FROM = "0.7.0"


def environment(root, package):
    """The Python of a new environment that holds the package."""
    home = root / package.partition("==")[2]
    venv.create(home, with_pip=True)
    subprocess.run([home / "bin/pip", "install", "--quiet", package], check=True)
    return home / "bin/python"


def run(python, script, *arguments):
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([python, HERE / script, *arguments], check=True, env=env)


def make(target, root):
    current = environment(root, CURRENT)
    run(current, "write_current.py", target)
    pythons = {version: environment(root, f"cubepi[sqlite]=={version}") for version in OLD}
    for version, python in pythons.items():
        run(python, "write_old.py", target / f"cubepi-{version}.sqlite3")
    mixed = target / "mixed.sqlite3"
    shutil.copyfile(target / f"cubepi-{MIXED_FROM}.sqlite3", mixed)
    run(current, "write_current.py", "--continue", mixed)
    run(pythons[MIXED_FROM], "write_old.py", "--again", mixed)
    run(current, "write_current.py", "--expect", mixed)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent / "test/golden"
    for old in [*target.glob("*.sqlite3*"), *target.glob("*.json*")]:
        old.unlink()
    with tempfile.TemporaryDirectory() as root:
        make(target, Path(root))
