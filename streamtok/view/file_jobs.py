"""The tab File: files that are read, block by block, as the page asks for the next."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator

from .file_report import FileReport
from .given import Given, Reading
from .optional_starlette import JSONResponse, Request, Response, run_in_threadpool
from .questions import Answer, Bodies, Question, Refused, refusal

MAX_BLOCK = 8 << 20  # bytes of an upload that are sent at once
MAX_JOBS = 4  # files that are read at the same time; the one that waits for longest is dropped
_TURN = 0.2  # seconds that one answer may read


class _Job:
    def __init__(self, report: FileReport, reading: Reading | None) -> None:
        self.report = report
        self.reading = reading
        self.blocks: Iterator[bytes] = iter(reading or ())
        self.lock = threading.Lock()

    def close(self) -> None:
        if self.reading is not None:
            self.reading.close()


class FileJobs:
    """The files that pages read at the moment: uploads in blocks, and the one that was given."""

    def __init__(self, given: Given | None, bodies: Bodies) -> None:
        self._given = given
        self._bodies = bodies
        self._jobs: OrderedDict[str, _Job] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, question: Question) -> Answer:
        """{encoding, source: upload | given} -> {job}."""
        source = question.choice("source", "upload", "given")
        if source == "given" and self._given is None:
            raise Refused("no file was given: streamtok view FILE")
        reading = self._given.open() if source == "given" and self._given is not None else None
        job = _Job(FileReport(question.encoding()), reading)
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._jobs[name] = job
            dropped = self._jobs.popitem(last=False)[1] if len(self._jobs) > MAX_JOBS else None
        if dropped is not None:
            with dropped.lock:
                dropped.close()
        return {"job": name}

    def read(self, question: Question) -> Answer:
        """{job} -> the report, after more of the given file was read."""
        job = self._job(question.text("job", 100))
        with job.lock:
            if job.reading is None:
                raise Refused("this file is uploaded: send its blocks")
            end = time.monotonic() + _TURN
            try:
                while time.monotonic() < end and not job.report.is_done:
                    block = next(job.blocks, None)
                    if block is None:
                        job.report.finish()
                        job.close()
                    else:
                        job.report.add(block)
            except OSError as error:
                raise Refused(f"the file cannot be read: {error.strerror or error}", 422) from None
            report = job.report.as_json()
            return {**report, "read": job.reading.read, "size": job.reading.size}

    def finish(self, question: Question) -> Answer:
        """{job} -> the report of an upload that is complete."""
        job = self._job(question.text("job", 100))
        with job.lock:
            job.report.finish()
            return job.report.as_json()

    async def feed(self, request: Request) -> Response:
        """The next block of an upload: bytes, with the job in the URL."""
        try:
            job = self._job(request.query_params.get("job", ""))
            async with self._bodies.read(request, "application/octet-stream", MAX_BLOCK) as block:
                return JSONResponse(await run_in_threadpool(_add, job, block))
        except Exception as error:
            return refusal(error)

    def _job(self, name: str) -> _Job:
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                raise Refused("this file is not read any more", 409)
            self._jobs.move_to_end(name)
            return job


def _add(job: _Job, block: bytes) -> Answer:
    with job.lock:
        if job.report.is_done or job.reading is not None:
            raise Refused("this file takes no more blocks", 409)
        job.report.add(block)
        return job.report.as_json()
