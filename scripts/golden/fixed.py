"""Makes what Python writes repeatable: a clock that counts, ids that count, and fixed times in the rows."""

import itertools
import sqlite3
import time
import uuid

START = 1_750_000_000.0
JULIAN_START = 2_460_841.5


def freeze():
    """From here on time.time() advances by a quarter of a second a call, and uuid4() counts."""
    ticks = itertools.count()
    ids = itertools.count(1)
    time.time = lambda: START + next(ticks) / 4
    uuid.uuid4 = lambda: uuid.UUID(int=(0xE0E0 << 112) | next(ids))


def settle(path):
    """Gives the columns that SQLite filled with the present time fixed values, in the order of the rows."""
    columns = {
        "messages": ["created_at"],
        "thread_pending_request": ["created_at"],
        "thread_hitl_answers": ["answered_at"],
        "runs": ["claimed_at", "completed_at"],
    }
    db = sqlite3.connect(path)
    with db:
        for table, names in columns.items():
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
                for name in names:
                    db.execute(
                        f"UPDATE {table} SET {name} = ? + rowid / 1024.0 WHERE {name} IS NOT NULL", (JULIAN_START,)
                    )
    db.close()
