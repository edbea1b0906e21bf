"""A change of the numerical code cannot pass without a new kernel version."""

import ast
import hashlib
import json
from pathlib import Path

from hdica.systems.kernel import KERNEL_VERSION

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).parent / "kernel_digest.json"
FOLDERS = ("ingredients", "finite", "limits", "systems")


def numerical_digest() -> str:
    """SHA-256 of the numerical sources without comments and docstrings."""
    total = hashlib.sha256()
    for path in sorted(p for f in FOLDERS for p in (ROOT / "hdica" / f).rglob("*.py")):
        if path.name == "kernel.py":
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
                value = body[0].value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    body.pop(0)
        total.update(f"{path.relative_to(ROOT)}\n{ast.unparse(tree)}\n".encode())
    return total.hexdigest()


def test_kernel_version_belongs_to_these_sources():
    record = json.loads(RECORD.read_text())
    assert record == {"kernel_version": KERNEL_VERSION, "digest": numerical_digest()}, (
        "the numerical sources changed: if any number can change, raise KERNEL_VERSION in "
        "hdica/systems/kernel.py; then run python -m tests.systems.test_kernel_version"
    )


if __name__ == "__main__":
    content = {"kernel_version": KERNEL_VERSION, "digest": numerical_digest()}
    RECORD.write_text(json.dumps(content, indent=1) + "\n")
