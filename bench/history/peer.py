"""Mem0's Python store under the measure: python peer.py WORK FILE LARGE. Does what each line of stdin names, and prints how
many milliseconds it took. WORK is the JSON of what work.ts exports.
"""

import itertools
import json
import sys
import time

from mem0.memory.storage import SQLiteManager

work, path, large = sys.argv[1:]
work = json.loads(work)
manager = SQLiteManager(path)
million = SQLiteManager(large)
at = "2026-05-07T10:00:00+00:00"
value = work["VALUE"]
said = [{"role": "user", "content": value}, {"role": "assistant", "content": value}]
numbers = itertools.count()


def add():
    for _ in range(work["ADDS"]):
        manager.add_history(f"memory-{next(numbers)}", None, value, "ADD", created_at=at)


def batch():
    manager.batch_add_history(
        [
            {"memory_id": f"memory-{next(numbers)}", "new_memory": value, "event": "ADD", "created_at": at}
            for _ in range(work["BATCH"])
        ]
    )


def save():
    for _ in range(work["SAVES"]):
        manager.save_messages(said, "user_id=ada")


def get():
    for _ in range(work["SCANS"]):
        million.get_history(f"memory-{next(numbers) * 7 % work['MEMORIES']}")


for line in sys.stdin:
    start = time.perf_counter()
    {"add": add, "batch": batch, "save": save, "get": get}[line.strip()]()
    print((time.perf_counter() - start) * 1000, flush=True)
