"""A process that writes runs with CubeLoop: writer.py FILE THREAD RUNS. The same as writer.ts does; prints null."""

import asyncio
import sys

from cubeloop.checkpointer import SQLiteCheckpointer
from cubeloop.providers.base import AssistantMessage, TextContent, UserMessage


async def main(file, thread, runs):
    async with SQLiteCheckpointer(file) as cp:
        for i in range(int(runs)):
            run_id = f"run-{i}"
            await cp.claim_run(thread, run_id)
            await cp.append(thread, [UserMessage(content=[TextContent(text=f"question {i}")], run_id=run_id)])
            await cp.append(thread, [AssistantMessage(content=[TextContent(text=f"answer {i}")], run_id=run_id)])
            await cp.mark_run_complete(thread, run_id)
    print("null")


asyncio.run(main(*sys.argv[1:]))
