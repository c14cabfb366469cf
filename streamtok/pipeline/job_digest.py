"""Which job made an output: a digest of its settings and of the contents of its inputs.

Also says in which option two jobs differ.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ..files.named_errors import shown

POLICY = "special", "errors", "max_pending", "skip_bad_lines", "max_bad_lines"
"""Options that only decide about text that has not been read: they may change as a job goes on."""


def job_digest(settings: dict[str, Any]) -> str | None:
    """The digest of a job; None if an input cannot be compared with that of another run.

    settings: what the output depends on, as JSON values; "inputs" are the fingerprints of the
    inputs. Their names do not matter. Pipes, sockets and files that grow have no fingerprint that
    stands for their contents.
    """
    inputs = [
        {key: value for key, value in one.items() if key != "name"} for one in settings["inputs"]
    ]
    if not all(one.get("size") is not None and one.get("tag") for one in inputs):
        return None
    row = json.dumps(settings | {"inputs": inputs}, sort_keys=True)
    return hashlib.sha256(row.encode("utf-8", "surrogatepass")).hexdigest()


def in_words(option: str, value: Any) -> str:
    """A run's option in words. value: in JSON, with true for a switch and null for none."""
    if value is None or value is False:
        return f"without {option}"
    if value is True:
        return f"with {option}"
    values = value if isinstance(value, list) else [value]
    return f"with {option} {','.join(shown(str(one)) for one in values)}"
