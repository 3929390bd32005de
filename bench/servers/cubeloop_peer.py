"""CubeLoop's Postgres checkpointer under the measure: python cubeloop_peer.py URL TURNS. Does what each line of stdin names ("append
THREAD" or "load THREAD"), and prints how many milliseconds it took.
"""

import asyncio
import json
import sys
import time

from cubeloop.checkpointer.postgres import PostgresCheckpointer
from cubeloop.providers.base import AssistantMessage, ToolResultMessage, UserMessage

ROLES = {"user": UserMessage, "assistant": AssistantMessage, "tool_result": ToolResultMessage}
url, path = sys.argv[1:]
with open(path) as file:
    turns = json.load(file)
for turn in turns:
    turn["messages"] = [ROLES[message["role"]].model_validate(message) for message in turn["messages"]]


async def append(checkpointer, thread):
    for turn in turns:
        await checkpointer.claim_run(thread, turn["runId"])
        for message in turn["messages"]:
            await checkpointer.append(thread, [message])
        await checkpointer.mark_run_complete(thread, turn["runId"])


async def load(checkpointer, thread):
    await checkpointer.load(thread)


async def main():
    loop = asyncio.get_running_loop()
    async with PostgresCheckpointer(url) as checkpointer:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            name, thread = line.split()
            start = time.perf_counter()
            await {"append": append, "load": load}[name](checkpointer, thread)
            print((time.perf_counter() - start) * 1000, flush=True)


asyncio.run(main())
