"""Mem0's SQLiteManager on one file, called from another process: python mem0_peer.py FILE

Reads one call a line, a JSON list of a method's name, its arguments and its keyword arguments, and prints one reply a
line: {"value": …} or {"error": …}.
"""

import json
import sys

from mem0.memory.storage import SQLiteManager

manager = SQLiteManager(sys.argv[1])
# As Python's sqlite3 waits by default, but longer: tests hold locks.
manager.connection.execute("PRAGMA busy_timeout = 20000")
for line in sys.stdin:
    name, args, kwargs = json.loads(line)
    try:
        reply = {"value": getattr(manager, name)(*args, **kwargs)}
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply), flush=True)
manager.close()
