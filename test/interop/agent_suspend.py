"""Prompts a CubeLoop agent and leaves when it waits on a person.

  python agent_suspend.py FILE THREAD RUN PROMPT SCRIPT [GATE]

SCRIPT is JSON: the model's turns, each a text or a list of calls {"id", "name", "arguments"}. GATE is "policy" or
"confirm" (Default: policy). Prints {"outcome": "suspended" | "complete" | …, "executed": [[tool, argument, …], …]}.
"""

import asyncio
import json
import sys

from cubeloop.checkpointer import SQLiteCheckpointer

from faux_agent import FauxAgent


async def main(file, thread, run, prompt, script, gate="policy"):
    async with SQLiteCheckpointer(file) as checkpointer:
        faux = FauxAgent(checkpointer, thread, run, json.loads(script), gate)
        await faux.until_settled(faux.agent.prompt(prompt, run_id=run))
        print(faux.report())


asyncio.run(main(*sys.argv[1:]))
