"""Late interaction on a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.memory import PostgresLongTermMemory
from tests.long_term.late_interaction import LateInteractionContract
from tests.long_term_postgres.test_contract import schema_of


class TestPostgres(LateInteractionContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_dsn: str, tmp_path: Path) -> None:
        self.dsn = schema_of(postgres_dsn, tmp_path)

    def open(self, embedder: Any = None, **options: Any) -> PostgresLongTermMemory:
        return PostgresLongTermMemory(self.dsn, embedder, **options)
