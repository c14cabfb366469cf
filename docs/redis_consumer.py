"""Token ids of Redis Streams: entries arrive at least once; their ids are added exactly once.

    python docs/redis_consumer.py --url redis://localhost:6379 --group ids --name one KEY...

Each KEY is a Redis Stream whose entries, in order, form texts: the field `text` has the next piece
of a text, cut anywhere; an entry with a field `end` ends it, and the next entry begins another.
The ids go to the stream `{KEY}:ids`, field `ids`, as little-endian u32.

The ids, the position and the encoder's state are written in one transaction, so they cannot
disagree; docs/redis.md says why that is enough.
"""

from __future__ import annotations

import argparse
import signal
import time

import redis

import streamtok

POLICY = {"errors": "replace", "disallowed_special": ()}  # accepts any bytes: nothing gets stuck


class LostText(Exception):
    """Entries were deleted from the stream before they were encoded."""


class Consumer:
    """One member of a consumer group. Any number of them may share the same streams."""

    def __init__(
        self,
        client: redis.Redis,  # with protocol=2 and without decode_responses
        encoding: streamtok.Encoding,
        keys: list[str],
        *,
        group: str,
        name: str,
        count: int = 100,  # entries in a transaction
        min_idle_ms: int = 30_000,  # entries pending for longer belonged to a dead consumer
    ):
        self.client, self.encoding, self.keys = client, encoding, keys
        self.group, self.name, self.count, self.min_idle_ms = group, name, count, min_idle_ms
        self.claim_at = 0.0
        self.is_stopping = False

    def run(self) -> None:
        """Consume until `is_stopping`. Raises LostText."""
        while not self.is_stopping:
            try:
                self.create_groups()
                while not self.is_stopping:
                    self.step(block_ms=500)
            except (redis.ConnectionError, redis.TimeoutError):
                time.sleep(0.2)  # the state will show whether the last transaction happened

    def create_groups(self) -> None:
        """Make streams and groups that do not exist; a group begins at the first entry."""
        for key in self.keys:
            try:
                self.client.xgroup_create(key, self.group, id="0", mkstream=True)
            except redis.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    def step(self, block_ms: int) -> None:
        """Take over what dead consumers left, then wait for new entries and encode them."""
        if time.monotonic() >= self.claim_at:
            self.claim_at = time.monotonic() + self.min_idle_ms / 2000
            for key in self.keys:
                self.claim(key)
        news = dict.fromkeys(self.keys, ">")
        reply = self.client.xreadgroup(self.group, self.name, news, self.count, block_ms)
        for key, entries in reply or []:
            self.finish(key.decode(), [entry for entry, _ in entries])

    def claim(self, key: str) -> None:
        """Finish entries that were delivered to a consumer that never acknowledged them."""
        start = b"0-0"
        while True:
            start, entries, deleted = self.client.xautoclaim(
                key, self.group, self.name, self.min_idle_ms, start, self.count
            )
            if deleted:
                last = self.client.hget(f"{{{key}}}:state", "last") or b"0-0"
                lost = [entry for entry in deleted if number(entry) > number(last)]
                if lost:
                    raise LostText(f"{key}: entry {lost[0].decode()} was deleted unencoded")
            if entries:
                self.finish(key, [entry for entry, _ in entries])
            if start == b"0-0":
                return

    def finish(self, key: str, delivered: list[bytes]) -> None:
        """Encode up to the last of these entries, and acknowledge them all."""
        while self.commit(key, delivered[-1]):
            pass
        # Includes entries encoded before and delivered again, perhaps to a new group.
        self.client.xack(key, self.group, *delivered)

    def commit(self, key: str, upto: bytes) -> bool:
        """Encode the entries after the last encoded one in one transaction. False if none remain.

        They are read by range, not from the delivery: earlier ones may have been delivered to
        another consumer that died or is slow. The first consumer encodes them.
        """
        state, out = f"{{{key}}}:state", f"{{{key}}}:ids"  # braces: one slot in a cluster
        with self.client.pipeline() as pipe:
            try:
                pipe.watch(state)
                last, saved = pipe.hmget(state, "last", "encoder")
                entries = pipe.xrange(key, b"(" + (last or b"0-0"), upto, self.count)
                if not entries:
                    return False
                stream = self.encoding.stream_encoder(**POLICY)
                if saved:
                    stream.setstate(saved)
                ids = b"".join(
                    stream.encode_to_numpy(fields.get(b"text", b""), final=b"end" in fields)
                    .astype("<u4")
                    .tobytes()
                    for _, fields in entries
                )
                last = entries[-1][0]
                pipe.multi()
                if ids:
                    pipe.xadd(out, {"ids": ids}, id=last)
                pipe.hset(state, mapping={"last": last, "encoder": stream.getstate()})
                pipe.xack(key, self.group, *(entry for entry, _ in entries))
                pipe.execute()
            except redis.WatchError:
                pass  # another consumer was faster, or the connection broke: try again
        return True


def number(entry: bytes) -> tuple[int, int]:
    """The id of an entry as two numbers, to compare: as text, 9-0 would come after 10-0."""
    milliseconds, _, sequence = entry.partition(b"-")
    return int(milliseconds), int(sequence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("keys", nargs="+", metavar="KEY")
    parser.add_argument("--url", default="redis://localhost:6379")
    parser.add_argument("--group", default="ids")
    parser.add_argument("--name", required=True, help="unique name of this consumer")
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--count", type=int, default=100, help="entries in a transaction")
    parser.add_argument("--min-idle-ms", type=int, default=30_000)
    args = parser.parse_args()
    consumer = Consumer(
        redis.Redis.from_url(args.url, protocol=2),
        streamtok.get_encoding(args.encoding),
        args.keys,
        group=args.group,
        name=args.name,
        count=args.count,
        min_idle_ms=args.min_idle_ms,
    )

    def stop(*_: object) -> None:
        consumer.is_stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    consumer.run()


if __name__ == "__main__":
    main()
