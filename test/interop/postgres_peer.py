"""CubeLoop's Postgres checkpointer, called from another process: python postgres_peer.py URL. The calls are peer.py's."""

import asyncio
import sys

from cubeloop.checkpointer.postgres import PostgresCheckpointer
from peer import serve


async def main():
    async with PostgresCheckpointer(sys.argv[1]) as checkpointer:
        await serve(checkpointer)


asyncio.run(main())
