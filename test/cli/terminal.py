"""Runs a command on a pseudo-terminal, as a person would: waits for a text, types, waits for the next.

argv: steps as JSON [[text to wait for, what to type], ...], columns, command... Prints {"output", "code", "missing"}.
"""
import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios
import time

steps = json.loads(sys.argv[1])
columns = int(sys.argv[2])
command = sys.argv[3:]

pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)

output = b""
seen = 0
missing = None
deadline = time.monotonic() + 20
while True:
    if steps:
        at = output.find(steps[0][0].encode(), seen)
        if at != -1:
            wanted, typed = steps.pop(0)
            seen = at + len(wanted.encode())
            os.write(terminal, typed.encode())
            continue
    if time.monotonic() > deadline:
        missing = steps[0][0] if steps else "the end"
        os.kill(pid, 9)
        break
    if select.select([terminal], [], [], 0.2)[0]:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        output += data

if steps and missing is None:
    missing = steps[0][0]
_, status = os.waitpid(pid, 0)
print(json.dumps({"output": output.decode("utf-8", "replace"), "code": os.waitstatus_to_exitcode(status), "missing": missing}))
