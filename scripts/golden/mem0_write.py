"""Writes with one release of Mem0, through its own storage module: python mem0_write.py STORAGE.PY FILE [TURN]

What this release reads from the file afterwards goes into FILE's .json. TURN counts the releases that wrote to it.
"""

import importlib.util
import inspect
import json
import sqlite3
import sys
import uuid
from pathlib import Path

from fixed import START, freeze

freeze()

TEXTS = [
    "Likes tea",
    "",
    "🧵 👩‍👩‍👧‍👦 𠮷 e\u0301 \u00e9",
    "nul \0 after",
    "quotes \" ' ` \\ %_",
    "\u2028 line\nbreaks\r\n\ttab",
]
# As Mem0 writes them: of UTC, and of US/Pacific in releases before 1.0.
TIMES = ["2025-06-15T15:06:40.123456+00:00", "2025-06-15T08:06:41.000001-07:00", "2025-06-15T15:06:42+00:00", None]


def load(path):
    spec = importlib.util.spec_from_file_location("storage", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    real = module.datetime if hasattr(module, "datetime") else None
    if real is not None:
        moments = iter(range(10_000))

        class Fixed(real):
            @classmethod
            def now(cls, tz=None):
                return real.fromtimestamp(START + next(moments) / 8, tz)

            @classmethod
            def utcnow(cls):
                return real.utcfromtimestamp(START + next(moments) / 8)

        module.datetime = Fixed
    return module


def write(manager):
    parameters = inspect.signature(manager.add_history).parameters

    def add(*values, **more):
        manager.add_history(*values, **{name: value for name, value in more.items() if name in parameters})

    add("m-1", None, TEXTS[0], "ADD", created_at=TIMES[0], actor_id="ada", role="user")
    add("m-1", TEXTS[0], "Likes coffee", "UPDATE", created_at=TIMES[0], updated_at=TIMES[1], role="assistant")
    add("m-1", "Likes coffee", None, "DELETE", created_at=TIMES[0], updated_at=TIMES[2], is_deleted=1)
    for i, text in enumerate(TEXTS):
        add(f"text-{i}", text, text, "ADD", created_at=TIMES[i % 4], actor_id=text, role=text)
    add("none", None, None, "NONE")
    if hasattr(manager, "batch_add_history"):
        record = {"memory_id": "batch", "event": "ADD", "created_at": TIMES[2]}
        manager.batch_add_history([{**record, "new_memory": f"value {i}"} for i in range(20)])
    if hasattr(manager, "save_messages"):
        for scope in ("user_id=ada", "user_id=ada&agent_id=bot", "🧵"):
            said = [{"role": "user", "content": f"{scope} {text}", "name": None} for text in TEXTS]
            manager.save_messages(said, scope)
            manager.save_messages([{"role": "assistant", "content": f"{i}", "name": "bot"} for i in range(7)], scope)


def expectation(manager, path):
    db = sqlite3.connect(path)
    ids = [row[0] for row in db.execute("SELECT DISTINCT memory_id FROM history ORDER BY memory_id")]
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    scopes = []
    if "messages" in tables:
        scopes = [row[0] for row in db.execute("SELECT DISTINCT session_scope FROM messages ORDER BY 1")]
    db.close()
    return {
        "histories": {memory: manager.get_history(memory) for memory in ids},
        "windows": {scope: manager.get_last_messages(scope) for scope in scopes},
    }


storage, path, *turn = sys.argv[1:]
for _ in range(1000 * int(turn[0]) if turn else 0):
    uuid.uuid4()
manager = load(storage).SQLiteManager(path)
write(manager)
expected = expectation(manager, path)
manager.connection.close()
manager.connection = None
Path(path).with_suffix(".json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
