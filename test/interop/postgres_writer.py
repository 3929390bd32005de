"""A process that appends with CubeLoop to a thread on Postgres: postgres_writer.py URL THREAD NAME COUNT; prints null."""

import asyncio
import sys

from cubeloop.checkpointer.postgres import PostgresCheckpointer
from cubeloop.providers.base import TextContent, UserMessage


async def main(url, thread, name, count):
    async with PostgresCheckpointer(url) as cp:
        for i in range(int(count)):
            await cp.append(thread, [UserMessage(content=[TextContent(text=f"{name} {i}")])])
    print("null")


asyncio.run(main(*sys.argv[1:]))
