"""Answers the request that a thread waits on, and goes on with a CubeLoop agent until it ends or waits again.

  python agent_respond.py FILE THREAD QUESTION ANSWER SCRIPT

ANSWER is JSON, SCRIPT as in agent_suspend.py. The run is the one that the pending request names. Prints the same report.
"""

import asyncio
import json
import sys

from cubeloop.checkpointer import SQLiteCheckpointer

from faux_agent import FauxAgent


async def main(file, thread, question, answer, script):
    async with SQLiteCheckpointer(file) as checkpointer:
        _, run = await checkpointer.load_pending(thread)
        faux = FauxAgent(checkpointer, thread, run, json.loads(script))
        await faux.until_settled(faux.agent.respond(question_id=question, answer=json.loads(answer)))
        print(faux.report())


asyncio.run(main(*sys.argv[1:]))
