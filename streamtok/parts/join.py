"""Joins finished outputs of one format: the same files that one process would have made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import SidecarError
from ..pipeline import sinks
from ..pipeline.run import Totals
from ..pipeline.sinks.arrow import read_schema
from ..pipeline.sinks.finished import Finished, read_documents

if TYPE_CHECKING:
    from ..pipeline.sinks.flat import Ends, IdArray


def family_of(sources: Sequence[Finished], max_id: int) -> sinks.Family:
    """The files that the outputs become together.

    max_id: of their encoding. Raises SidecarError unless all have one format and one encoding.
    """
    first = sources[0]
    for one in sources:
        if one.about is None:
            raise SidecarError(f"{one.path} has no sidecar that names its encoding")
        assert first.about is not None
        for what, found, expected in (
            ("format", one.format, first.format),
            ("encoding", one.about.encoding, first.about.encoding),
            ("vocabulary", one.about.digest, first.about.digest),
        ):
            if found != expected:
                raise SidecarError(
                    f"{one.path} has another {what} than {first.path}: {found}, not {expected}"
                )
    assert first.about is not None
    about = sinks.About(
        first.about.encoding, first.about.digest, max_id, first.about.vocabulary, _job(sources)
    )
    return sinks.Family(first.format, about, True)


def _job(sources: Iterable[Finished]) -> str | None:
    """The digest of the job: the digests of the joined outputs, in order."""
    rows = []
    for one in sources:
        assert one.about is not None
        sha256 = one.about.sha256
        if sinks.has_schema(one.format):
            sha256 = (read_schema(one.path) or {}).get("ids_sha256")
        if sha256 is None:
            return None
        files = {key: list(value) for key, value in one.about.files.items()}
        rows.append([sha256, one.about.tokens, one.about.documents, files])
    return hashlib.sha256(json.dumps(["join", rows], sort_keys=True).encode()).hexdigest()


def join_into(sink: sinks.Files, sources: Iterable[Finished]) -> Totals:
    """Write the ids and documents of the outputs to a sink, in order, and publish it.

    Raises OSError, ValueError if an output is damaged.
    """
    totals = Totals()
    for one in sources:
        try:
            for ids, ends in _documents(one):
                sink.write(ids, ends)
                totals.tokens += len(ids)
                totals.documents += len(ends)
        except ValueError as error:
            raise ValueError(f"{one.path}: {error}") from error
        totals.inputs += 1
    sink.finish()
    sink.publish()
    return totals


def _documents(one: Finished) -> Iterator[tuple[IdArray, Ends]]:
    """As `read_documents`; documents without a position in the file come at its end.

    Those are the documents of formats that do not record them, and empty ones in Megatron's.
    """
    assert one.about is not None
    tokens = documents = 0
    for ids, ends in read_documents(one):
        tokens, documents = tokens + len(ids), documents + len(ends)
        yield ids.astype(np.uint32, copy=False), ends
    if tokens != one.about.tokens:
        raise ValueError(f"it has {tokens:,} ids, not the {one.about.tokens:,} recorded")
    yield np.empty(0, np.uint32), np.zeros(max(0, one.about.documents - documents), np.int64)
