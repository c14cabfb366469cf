"""The command line: `streamtok encode | decode | count | list | bench | serve | train`.

Standard input to standard output unless files are named. What is expected to go wrong is one line
on standard error and exit code 1 (2: wrong usage); 130 after Ctrl-C, 141 when the reader of the
output has gone, as for any Unix filter. Not here: formats and files (`sinks.py`), sockets
(`serve.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import numpy as np

from . import registry, sinks
from .chunker import DEFAULT_MAX_PENDING, StreamEncoder
from .encoding import Encoding
from .errors import PendingLimitExceeded, StreamtokError
from .vocabulary import PACKED_NAMES

if TYPE_CHECKING:
    from .sinks import IdArray

_CHUNK_SIZE = 1 << 16  # larger ones are no faster, and a pipe gives no more at once
_SIZE_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}
_STDIN = 0


class _Refused(Exception):
    """An expected failure: its text is the one line that the user sees."""


def main(argv: Sequence[str] | None = None) -> int:
    """int: the exit code of the command in `argv` (the process's arguments if None).

    Raises SystemExit for wrong usage and --help, as argparse does. Nothing else is raised for
    what a user can cause.
    """
    args = _parser().parse_args(argv)
    with _Signals() as signals:
        args.signals = signals
        try:
            code: int = args.command(args)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            _forget_stdout()
            return 128 + getattr(signal, "SIGPIPE", 13)
        except _Signals.Stopped as stop:
            output = getattr(args, "output", "-")
            if output != "-":
                _complain(f"interrupted, {_shown(output)} was not written")
            return 128 + stop.number
        except KeyboardInterrupt:
            return 130
        except (_Refused, StreamtokError) as error:
            _complain(str(error))
        except OSError as error:
            _complain(_os_error(error))
        except MemoryError:
            _complain("not enough memory")
        return 1


# Commands


def _encode(args: argparse.Namespace) -> int:
    encoding = _load_encoding(args)
    stream = _open_stream(args, encoding)
    names = args.files or ["-"]
    sizes = [_input_size(name) for name in names]
    max_id = encoding.max_token_value
    try:
        chosen = sinks.choose_format(args.format, args.output, max_id)
    except ValueError as error:
        raise _Refused(str(error)) from None
    if args.output == "-" and chosen in ("u16", "u32") and _is_terminal(sys.stdout):
        raise _Refused(f"{chosen} is not for a terminal: use -o FILE, a pipe or --format text")
    start = time.perf_counter()
    bytes_in = tokens = 0
    with sinks.open_output(args.output) as output, _progress(args, sizes) as advance:
        try:
            sink = sinks.make_sink(output, chosen, max_id)
        except ValueError as error:
            raise _Refused(str(error)) from None
        for name in names:
            for size, ids in _ids_of(name, stream, args):
                sink.write(ids)
                bytes_in += size
                tokens += len(ids)
                advance(size, tokens)
        sink.finish()
    if not args.quiet:
        _report(args, len(names), bytes_in, tokens, time.perf_counter() - start)
    return 0


def _count(args: argparse.Namespace) -> int:
    stream = _open_stream(args, _load_encoding(args))
    names = args.files or ["-"]
    rows: list[tuple[str, int, int]] = []
    for name in names:
        stream.reset()
        bytes_in = tokens = 0
        try:
            _input_size(name)
            for size, ids in _ids_of(name, stream, args):
                bytes_in += size
                tokens += len(ids)
        except (_Refused, OSError) as error:  # the other files still count, as in wc
            _complain(_os_error(error) if isinstance(error, OSError) else str(error))
            continue
        rows.append((name, tokens, bytes_in))
        _print_count(args, *rows[-1], is_named=bool(args.files))
    if len(names) > 1:
        total = "total", sum(row[1] for row in rows), sum(row[2] for row in rows)
        _print_count(args, *total, is_named=True)
    return 0 if len(rows) == len(names) else 1


def _print_count(
    args: argparse.Namespace, name: str, tokens: int, bytes_in: int, is_named: bool
) -> None:
    if args.json:
        print(json.dumps({"name": name, "tokens": tokens, "bytes": bytes_in}), flush=True)
    else:
        print(f"{tokens:>8} {_shown(name)}" if is_named else tokens, flush=True)


def _decode(args: argparse.Namespace) -> int:
    encoding = _load_encoding(args)
    _input_size(args.file)
    try:
        chosen = sinks.choose_format(args.format, args.file, encoding.max_token_value)
    except ValueError as error:
        raise _Refused(str(error)) from None
    decoder = encoding.stream_decoder()
    with sinks.open_output(args.output) as output:
        rows = sinks.read_ids(_blocks(args.file, _CHUNK_SIZE, args.signals), chosen)
        while True:
            try:
                ids = next(rows, None)
            except ValueError as error:
                raise _Refused(f"{_input_name(args.file)}: {error}") from None
            if ids is None:
                return 0
            try:
                data = decoder.decode_bytes(ids)
            except (KeyError, OverflowError) as error:
                at = getattr(error, "position", None)
                if at is None:  # no uint32
                    at = int(np.flatnonzero((ids < 0) | (ids > 0xFFFFFFFF))[0])
                raise _Refused(
                    f"{_input_name(args.file)}: id {ids[at]} is not in {encoding.name} "
                    f"(after {decoder.tokens_in + at} others)"
                ) from None
            output.write(data)


def _list(args: argparse.Namespace) -> int:
    print(f"{'encoding':<15}{'ids':>8}{'special':>9}  vocabulary")
    for name in registry.list_encoding_names():
        # From the table, not from Encoding objects: p50k_base would have to be downloaded.
        spec = registry._SPECS[name]
        n_vocab = spec.explicit_n_vocab or max(spec.special_tokens.values()) + 1
        where = "packed" if spec.vocabulary in PACKED_NAMES else "cache or download"
        print(f"{name:<15}{n_vocab:>8}{len(spec.special_tokens):>9}  {where}")
    return 0


def _bench(args: argparse.Namespace) -> int:
    from . import bench

    _load_encoding(args)
    _input_size(args.file)
    return bench.main(args.file, args.encoding, args.chunk_sizes, args.markdown)


def _serve(args: argparse.Namespace) -> int:
    from . import serve

    encoding = _load_encoding(args)
    _open_stream(args, encoding)  # refuses what no connection could use
    host, port = args.tcp or ("127.0.0.1", serve.DEFAULT_PORT)
    return serve.run(
        encoding,
        host=host,
        port=port,
        path=args.unix,
        on_ready=None if args.quiet else lambda where: _say(f"listening on {where}"),
        format=args.format,
        max_connections=args.max_connections,
        idle_timeout=args.idle_timeout,
        **_stream_settings(args, encoding),
    )


# Input


def _input_size(name: str) -> int | None:
    """Bytes in a regular file, None for what has no size. Raises OSError if it cannot be read."""
    if name == "-":
        return None
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not os.path.isfile(name):
        os.stat(name)
        return None
    with open(name, "rb") as file:
        return os.fstat(file.fileno()).st_size


def _blocks(name: str, size: int, signals: _Signals) -> Iterator[memoryview]:
    """What has arrived, as it arrives; each block is overwritten by the next one.

    Ctrl-C is heard while waiting for input only, so that a block is encoded and written whole.
    """
    buffer = memoryview(bytearray(size))
    with open(_STDIN if name == "-" else name, "rb", buffering=0, closefd=name != "-") as file:
        while True:
            with signals.heard():
                try:
                    n = file.readinto(buffer)
                    if n is None:  # somebody made the pipe non-blocking
                        select.select([file], [], [])
                        continue
                except OSError as error:
                    raise OSError(error.errno, error.strerror, _input_name(name)) from error
            if not n:
                return
            yield buffer[:n]


def _ids_of(
    name: str, stream: StreamEncoder, args: argparse.Namespace
) -> Iterator[tuple[int, IdArray]]:
    """(bytes read, ids) for each chunk of one input and for its end."""
    try:
        for block in _blocks(name, args.chunk_size, args.signals):
            yield len(block), stream.encode_to_numpy(block)
        yield 0, stream.encode_to_numpy(b"", final=True)
    except UnicodeDecodeError as error:
        raise _Refused(
            f"{_input_name(name)}: byte {error.start} is not UTF-8 ({error.reason}); "
            "--errors replace or --errors surrogateescape goes on"
        ) from None
    except PendingLimitExceeded as error:
        raise _Refused(f"{_input_name(name)}: {error} (--max-pending)") from None
    except StreamtokError:
        raise
    except ValueError as error:  # a disallowed special token; the first line says which and where
        what = str(error).partition("\n")[0].rstrip(".")
        raise _Refused(
            f"{_input_name(name)}: {what}; --allowed-special gives it its id, "
            "--disallowed-special none takes it as plain text"
        ) from None


# Encodings and settings


def _load_encoding(args: argparse.Namespace) -> Encoding:
    try:
        return registry.get_encoding(args.encoding)
    except StreamtokError as error:
        raise _Refused(" ".join(str(error).split())) from None
    except ValueError as error:
        raise _Refused(str(error)) from None


def _stream_settings(args: argparse.Namespace, encoding: Encoding) -> dict[str, Any]:
    return {
        "allowed_special": _specials(args.allowed_special, encoding),
        "disallowed_special": _specials(args.disallowed_special, encoding),
        "errors": args.errors,
        "max_pending": args.max_pending,
    }


def _open_stream(args: argparse.Namespace, encoding: Encoding) -> StreamEncoder:
    return encoding.stream_encoder(**_stream_settings(args, encoding))


def _specials(given: str, encoding: Encoding) -> Any:
    if given == "all":
        return given
    if given == "none":
        return frozenset()
    names = frozenset(given.split(","))
    for name in sorted(names - encoding.special_tokens_set):
        known = sorted(encoding.special_tokens_set)
        more = f" and {len(known) - 8} more" if len(known) > 8 else ""
        raise _Refused(
            f"{name!r} is no special token of {encoding.name}: "
            f"there are {', '.join(known[:8])}{more}"
        )
    return names


# What the user sees


@contextlib.contextmanager
def _progress(
    args: argparse.Namespace, sizes: list[int | None]
) -> Iterator[Callable[[int, int], None]]:
    """Give advance(bytes, all tokens), which moves a bar on a terminal and is silent elsewhere."""
    is_shared = args.output == "-" and _is_terminal(sys.stdout)  # ids on the same screen
    if args.quiet or args.json or is_shared or not _is_terminal(sys.stderr):
        yield lambda size, tokens: None
        return
    from tqdm import tqdm

    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    with tqdm(total=total, unit="B", unit_scale=True, leave=False, file=sys.stderr) as bar:

        def advance(size: int, tokens: int) -> None:
            bar.set_postfix_str(f"{tokens:,} tokens", refresh=False)
            bar.update(size)

        yield advance


def _report(
    args: argparse.Namespace, files: int, bytes_in: int, tokens: int, seconds: float
) -> None:
    if args.json:
        row = {"files": files, "bytes": bytes_in, "tokens": tokens, "seconds": round(seconds, 6)}
        row["bytes_per_token"] = round(bytes_in / tokens, 4) if tokens else 0.0
        _say(json.dumps(row), prefix="")
        return
    ratio = f", {bytes_in / tokens:.2f} bytes per token" if tokens else ""
    speed = f" ({bytes_in / seconds / 1e6:.1f} MB/s)" if seconds else ""
    plural = "" if files == 1 else "s"
    _say(
        f"{files} input{plural}, {bytes_in:,} bytes, {tokens:,} tokens{ratio}, "
        f"{seconds:.2f} s{speed}"
    )


def _is_terminal(file: TextIO | None) -> bool:
    return file is not None and file.isatty()  # None: the descriptor was closed


def _shown(name: str) -> str:
    # One line, printable, whatever bytes the file name has.
    return name if name.isprintable() else ascii(name)


def _input_name(name: str) -> str:
    return "standard input" if name == "-" else _shown(name)


def _os_error(error: OSError) -> str:
    what = error.strerror or str(error)
    if error.filename is None:
        return what
    return f"{_shown(os.fsdecode(error.filename))}: {what}"


def _say(text: str, prefix: str = "streamtok: ") -> None:
    with contextlib.suppress(OSError, AttributeError):  # nobody may be listening
        sys.stderr.write(f"{prefix}{text}\n")
        sys.stderr.flush()


def _complain(text: str) -> None:
    _say(" ".join(text.split("\n")), prefix="streamtok: error: ")


def _forget_stdout() -> None:
    # Else the interpreter complains at exit that it cannot flush what nobody reads.
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


class _Signals:
    """Turns SIGINT, SIGTERM and SIGHUP into `Stopped`, at moments where nothing is half written.

    A second signal is heard at once, for a reader of our output that is stuck. Signals that
    somebody else handles or ignores (`nohup`) are left alone.
    """

    class Stopped(BaseException):
        def __init__(self, number: int):
            super().__init__(number)
            self.number = number

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                if number is None:
                    continue
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_held and self._waiting is None:
            self._waiting = number
            return
        raise self.Stopped(number)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Signals stop the process inside this block; from its end on they wait for the next."""
        self._is_held = False
        if self._waiting is not None:
            raise self.Stopped(self._waiting)
        yield
        self._is_held = True


# Arguments


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*(?:([kmg])(?:i?b)?|b)?", text.strip().lower())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 65536, 64KiB or 1MiB")
    return int(found[1]) << _SIZE_UNITS[found[2] or ""]


def _chunk_size(text: str) -> int:
    size = _size(text)
    if not 1 <= size <= 1 << 30:
        raise argparse.ArgumentTypeError(f"a chunk has 1 byte to 1 GiB, not {text}")
    return size


def _chunk_sizes(text: str) -> list[int]:
    return [_chunk_size(part) for part in text.split(",")]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _complain(f"{message} (try: {self.prog} --help)")
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="streamtok",
        description="Exact BPE tokens of files, pipes and sockets, as they come.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"streamtok {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, function: Callable[[argparse.Namespace], int], text: str) -> Any:
        made = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        made.set_defaults(command=function)
        return made

    encode = command("encode", _encode, "turn text into ids; each file is a text of its own")
    encode.add_argument("files", nargs="*", metavar="FILE", help="- or none: standard input")
    _add_text_options(encode)
    _add_output(encode)
    encode.add_argument(
        "--format",
        choices=sinks.FORMATS,
        help="default: what the suffix of the output says (.npy .txt .u16 .u32), text for standard "
        "output, else u16 if the vocabulary fits, else u32; text is one id a line",
    )
    _add_chunk_size(encode)
    encode.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    encode.add_argument("--json", action="store_true", help="the summary as one line of JSON")

    decode = command("decode", _decode, "turn ids back into the bytes they stand for")
    decode.add_argument("file", nargs="?", default="-", metavar="FILE", help="- : standard input")
    _add_encoding(decode)
    _add_output(decode)
    decode.add_argument(
        "--format",
        choices=sinks.FORMATS,
        help="default: what the suffix of the input says, as for encode",
    )

    count = command("count", _count, "count the tokens of each file")
    count.add_argument("files", nargs="*", metavar="FILE", help="- or none: standard input")
    _add_text_options(count)
    _add_chunk_size(count)
    count.add_argument("--json", action="store_true", help="one line of JSON for each file")

    command("list", _list, "list the encodings")

    bench = command("bench", _bench, "compare naive with incremental streaming on your own file")
    bench.add_argument("file", metavar="FILE")
    _add_encoding(bench)
    bench.add_argument(
        "--chunk-sizes", type=_chunk_sizes, default=[256, 4096, 65536], metavar="SIZE,..."
    )
    bench.add_argument("--markdown", action="store_true", help="a table for a README")

    serve = command("serve", _serve, "encode what comes through a socket; ids go back")
    where = serve.add_mutually_exclusive_group()
    where.add_argument("--tcp", type=_address, metavar="HOST:PORT", help="default: 127.0.0.1:7654")
    where.add_argument("--unix", metavar="PATH", help="a socket that only you may use")
    _add_text_options(serve, max_pending=1 << 20)
    serve.add_argument("--format", choices=("text", "u32"), default="text")
    serve.add_argument("--max-connections", type=_positive, default=64, metavar="N")
    serve.add_argument(
        "--idle-timeout", type=_seconds, default=300.0, metavar="SECONDS", help="0: none"
    )
    serve.add_argument("-q", "--quiet", action="store_true", help="do not say where it listens")

    from .commands import train

    train.add_parser(commands)
    return parser


def _add_encoding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-e", "--encoding", default="cl100k_base", metavar="NAME", help="default: cl100k_base"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="default and - : standard output"
    )


def _add_chunk_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chunk-size", type=_chunk_size, default=_CHUNK_SIZE, metavar="SIZE", help="default: 64KiB"
    )


def _add_text_options(
    parser: argparse.ArgumentParser, max_pending: int = DEFAULT_MAX_PENDING
) -> None:
    _add_encoding(parser)
    parser.add_argument(
        "--allowed-special",
        default="none",
        metavar="all|none|NAME,...",
        help="special tokens whose text becomes their id (default: none)",
    )
    parser.add_argument(
        "--disallowed-special",
        default="all",
        metavar="all|none|NAME,...",
        help="those whose text is an error (default: all that are not allowed)",
    )
    parser.add_argument(
        "--errors",
        choices=("strict", "replace", "surrogateescape"),
        default="strict",
        help="bytes that are not UTF-8: an error, U+FFFD, or kept as they are",
    )
    parser.add_argument(
        "--max-pending",
        type=_size,
        default=max_pending,
        metavar="SIZE",
        help=f"bytes that may wait for what comes after (default: {max_pending >> 20}MiB)",
    )


def _version() -> str:
    from . import __version__

    return __version__
