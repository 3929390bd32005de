"""Prints the statements that make CubeLoop's own MySQL tables, as a JSON list: its metadata, and what its migration helpers add."""

import json

from cubeloop.checkpointer.mysql import cubeloop_metadata
from cubeloop.checkpointer.mysql import alembic_helpers as helpers
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateIndex, CreateTable

PARTITIONS = {
    "cubepi_messages": helpers.messages_partition_clause(),
    "cubepi_runs": helpers.runs_partition_clause(),
}

statements = []
for table in cubeloop_metadata.sorted_tables:
    create = str(CreateTable(table).compile(dialect=mysql.dialect())).strip()
    statements.append(f"{create} {PARTITIONS.get(table.name, '')}")
    statements += [str(CreateIndex(index).compile(dialect=mysql.dialect())) for index in table.indexes]
statements += [part.strip() for part in helpers.write_schema_version_op().split(";") if part.strip()]
print(json.dumps(statements))
