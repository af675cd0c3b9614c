"""What a user may import, and what an import may cost."""

import subprocess
import sys

import jianmu
import jianmu.memory


def test_every_public_name_can_be_loaded() -> None:
    for module in (jianmu, jianmu.memory):
        for name in module.__all__:
            assert getattr(module, name) is not None


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in out.stdout.split()}


def test_importing_jianmu_loads_no_third_party_package() -> None:
    assert not loaded_by("import jianmu") & {"pydantic", "py_trees", "typer", "numpy", "psycopg", "openai"}


def test_importing_memory_loads_no_behaviour_trees() -> None:
    assert "py_trees" not in loaded_by("import jianmu.memory")
