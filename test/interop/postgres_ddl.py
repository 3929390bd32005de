"""Prints as a JSON list the statements with which CubeLoop's own metadata and helpers make its Postgres tables, whole."""

import json

from cubeloop.checkpointer.postgres import alembic_helpers, cubeloop_metadata
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

statements = []
for table in cubeloop_metadata.sorted_tables:
    statements.append(str(CreateTable(table).compile(dialect=postgresql.dialect())))
    statements += [str(CreateIndex(index).compile(dialect=postgresql.dialect())) for index in table.indexes]
statements += [
    alembic_helpers.create_message_partitions_op(),
    alembic_helpers.create_runs_partitions_op(),
    alembic_helpers.write_schema_version_op(),
]
steps = [
    alembic_helpers.add_pending_request_column_op(),
    alembic_helpers.add_run_id_column_op(),
    alembic_helpers.upgrade_v3_to_v4_op(),
    alembic_helpers.upgrade_v4_to_v5_op(),
    alembic_helpers.write_schema_version_op(),
]
print(json.dumps({"create": statements, "upgrade": steps}))
