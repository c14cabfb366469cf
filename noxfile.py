"""All checks, one nox session each: `nox -l` lists them, `nox -s lint quick` runs two.

`.ci/run` runs the same sessions in a fresh copy of the tree. Arguments after `--` go to the
session's command: `nox -s tests-3.12 -- -k decoder`.

Most sessions use the checkout. They install what streamtok needs, but not streamtok: Python imports
it from this folder, and the core is compiled here after changes. Their environments are kept.
`tests` and `wheel` install a package that was built from this folder, in a new environment, and run
the tests from a copy outside of the checkout.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
CORE = ROOT / "streamtok" / "_core"
SOURCES = ("*.pyx", "*.pxd", "*.pxi", "*.h")
METADATA = nox.project.load_toml(ROOT / "pyproject.toml")
EXTRAS = METADATA["project"]["optional-dependencies"]
BUILD = METADATA["build-system"]["requires"]

# A minute on two cores: the law on small texts, and some tests of each package and its docstrings.
QUICK = [
    "tests/api/test_laws.py",
    "tests/api/test_encoding.py",
    "tests/api/test_stream_decoder.py",
    "tests/core/test_special.py",
    "tests/core/test_utf8.py",
    "tests/docs/test_reference.py",
    "tests/docs/test_readme.py",
    "tests/formats/test_merge_lists.py",
    "tests/jobs/test_sinks.py",
    "tests/jobs/test_sources.py",
    "tests/reference",
    "tests/serve/test_serve.py",
    "tests/training/test_trainer.py",
]

nox.needs_version = ">=2025.10.16"
nox.options.sessions = ["lint", "types", "quick", "docs"]
nox.options.reuse_venv = "yes"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False

# pyenv may have versions that are not on PATH. They are searched last.
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
PYENV_VERSIONS = sorted(map(str, PYENV.glob("versions/3.*/bin")))
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *PYENV_VERSIONS])

SPHINX = ("python", "-m", "sphinx", "-q", "-j", "auto")
HERE = {"PYTHONPATH": str(ROOT)}  # documents are tested with the checkout's streamtok

# Tests of what threads share; the others also run without the global lock, as few tokenizers do.
SHARING = [
    "tests/api/test_free_threads.py",
    "tests/api/test_threads.py",
    "tests/core/test_cache.py",
    "tests/training/test_side_by_side.py",
]
FREE_TESTS = [
    *SHARING,
    "tests/api/test_laws.py",
    "tests/api/test_stream_decoder.py",
    "tests/core/test_decoder.py",
]

# CPython 3.13 for `free_threads`: Debian has only its source.
FREE_THREADED = "python3.13t"
SOURCE = "/pool/main/p/python3.13/python3.13_3.13.5.orig.tar.xz"  # in apt's archive
DIGEST = "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640"

# One sdist for all Pythons of a command; removed when nox ends.
SDISTS = tempfile.TemporaryDirectory(prefix="streamtok-")


def install_needs(session: nox.Session, *extras: str) -> None:
    """Install what streamtok, these extras and a build of the core need."""
    needs = [need for extra in extras for need in EXTRAS[extra]]
    session.install(*BUILD, *METADATA["project"]["dependencies"], *needs)


def use_checkout(session: nox.Session, *extras: str) -> None:
    """Install what is needed, and build the core in this folder if its sources are newer.

    Without this check, each new environment would compile everything again: pip gives NumPy's
    `.pxd` files the time of their installation, so setup.py treats them as changed sources.
    """
    install_needs(session, *extras)
    command = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
    suffix = str(session.run("python", "-c", command, silent=True, log=False)).strip()
    built = [path.stat().st_mtime for path in CORE.glob(f"*{suffix}")]
    sources = [ROOT / "setup.py", *(path for kind in SOURCES for path in CORE.rglob(kind))]
    if not built or min(built) < max(path.stat().st_mtime for path in sources):
        session.run("python", "setup.py", "build_ext", "--inplace", silent=True)


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder, outside of any checkout."""
    with tempfile.TemporaryDirectory(prefix="streamtok-") as name:
        yield Path(name)


def copy_tree(to: Path, *without: str) -> None:
    """Copy this folder, except hidden files, build products and the names in `without`."""
    left_out = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", *without)
    shutil.copytree(ROOT, to, ignore=left_out)


def build(session: nox.Session, to: Path, *options: str) -> None:
    """Build packages from a copy, so that this folder's core need not be compiled again."""
    session.install("build")
    with folder() as work:
        copy_tree(work / "tree", "*.c", "*.so")
        command = ("python", "-m", "build", *options, "--outdir", str(to), str(work / "tree"))
        session.run(*command, silent=True)


def run_installed(session: nox.Session, package: Path) -> None:
    """Install a wheel or an sdist and run the tests on it, from a copy of them."""
    session.install(*BUILD, f"{package}[test]")
    shown = "print('Python', sys.version.split()[0], streamtok.__file__)"
    checked = "assert 'site-packages' in streamtok.__file__"
    where = "import sysconfig; print(sysconfig.get_path('platlib'))"
    installed = str(session.run("python", "-c", where, silent=True, log=False)).strip()
    with folder() as work:
        copy_tree(work / "tree", "*.c", "*.so")
        with session.chdir(work / "tree"):  # extensions for tests, which no package has
            command = ("setup.py", "-q", "build_ext", "--for-tests", "--build-lib", installed)
            session.run("python", *command, silent=True)
        # Without the package, so that `streamtok` can only be the installed one.
        copy_tree(work / "outside", "streamtok")
        with session.chdir(work / "outside"):
            session.run("python", "-c", f"import sys, streamtok; {shown}; {checked}")
            options = session.posargs or ["-n", "auto"]
            session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules, order of imports and format; names of files in documents; English."""
    session.install(*(need for need in EXTRAS["lint"] if need.startswith("ruff")))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", "tools/check_names.py")
    session.run("python", "tools/check_english.py")


@nox.session
def types(session: nox.Session) -> None:
    """Types: mypy, and the core's stubs against the built core."""
    use_checkout(session, "lint")
    session.run("mypy", "--strict", "streamtok")
    allowed = ("--allowlist", ".ci/stubtest-allowlist")
    session.run(
        *("python", "-m", "mypy.stubtest", "streamtok._core"),
        *("--mypy-config-file", "pyproject.toml", *allowed),
    )


@nox.session
def quick(session: nox.Session) -> None:
    """Some tests of each package, with fewer random examples: a minute."""
    use_checkout(session, "test")
    session.run(
        *("python", "-m", "pytest", "-q", "-n", "auto", *(session.posargs or QUICK)),
        env={"HYPOTHESIS_PROFILE": "sanitize"},
    )


@nox.session(python=["3.10", "3.11", "3.12", "3.13", "3.14"], reuse_venv=False)
def tests(session: nox.Session) -> None:
    """All tests on one Python, run on what the sdist builds, outside of the checkout."""
    sdists = Path(SDISTS.name)
    if not any(sdists.iterdir()):
        build(session, sdists, "--sdist")
    (sdist,) = sdists.iterdir()
    run_installed(session, sdist)


@nox.session(name="transformers-4")
def transformers_4(session: nox.Session) -> None:
    """Tests of `streamtok.hf` with transformers 4; all other sessions have version 5."""
    use_checkout(session, "test")
    session.install("transformers<5", "datasets>=3")  # the last with the same Hub library
    session.run("python", "-m", "pytest", "-q", "tests/hf", *session.posargs, env=HERE)


@nox.session
def vllm(session: nox.Session) -> None:
    """The plug-in inside vLLM itself. Its environment takes 6 GB, so `.ci/run` leaves it out."""
    use_checkout(session)
    tools = ("pytest", "hypothesis")
    needs = [need for need in EXTRAS["test"] if need.startswith(tools)]
    session.install("--no-cache-dir", "vllm>=0.33", *EXTRAS["hf"], *needs)
    # vLLM finds the plug-in by the entry points in streamtok.egg-info.
    session.run("python", "setup.py", "-q", "egg_info", silent=True)
    session.run("python", "-c", "import vllm; print('vLLM', vllm.__version__)")
    tests = ("python", "-m", "pytest", "-q", "tests/hf/with_vllm.py")
    session.run(*tests, *session.posargs, env=HERE)


@nox.session(reuse_venv=False)
def wheel(session: nox.Session) -> None:
    """All tests on the wheel that the sdist builds, outside of the checkout."""
    with folder() as work:
        build(session, work)
        (built,) = work.glob("*.whl")
        for name in zipfile.ZipFile(built).namelist():
            if "test" in name:
                session.error(f"the wheel has {name}")
        run_installed(session, built)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site from the sdist into build/site, and check its links. Tests run examples."""
    use_checkout(session, "docs", "web")  # imported by the reference pages
    with folder() as work:
        copy_tree(work / "tree")
        with session.chdir(work / "tree"):
            session.run("python", "setup.py", "-q", "sdist", "--dist-dir", "..", silent=True)
        shutil.unpack_archive(next(work.glob("*.tar.gz")), work, filter="data")
        (sdist,) = work.glob("streamtok-*/docs")
        site = work / "site"
        session.run(*SPHINX, "-W", "--keep-going", str(sdist), str(site), env=HERE)
        session.run("python", "tools/check_site.py", str(site))
        shutil.rmtree(ROOT / "build" / "site", ignore_errors=True)
        shutil.copytree(site, ROOT / "build" / "site")


@nox.session
def links(session: nox.Session) -> None:
    """Links of the documents to other hosts. Needs a network, so `.ci/run` leaves it out."""
    use_checkout(session, "docs")
    with folder() as work:
        session.run(*SPHINX, "-b", "linkcheck", "docs", str(work), env=HERE)


@nox.session
def hints(session: nox.Session) -> None:
    """Fails if the Cython compiler gives performance hints for the core."""
    session.install(*BUILD)
    with folder() as work:
        tree = work / "tree"
        copy_tree(tree, "*.c", "*.so")
        with session.chdir(tree):
            # setup.py compiles all .pyx files, whatever the command.
            testing = {"STREAMTOK_TESTING": "1"}
            said = str(session.run("python", "setup.py", "--name", silent=True, env=testing))
        for unit in tree.glob("streamtok/_core/*.pyx"):
            if f"Cythonizing streamtok/_core/{unit.name}" not in said:
                session.error(f"{unit.name} was not compiled:\n{said}")
    found = [line for line in said.splitlines() if "performance hint" in line]
    if found:
        session.error("\n".join(found))


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Check that everything the benchmarks time gives equal ids. Nothing is timed."""
    use_checkout(session, "test")
    session.run("python", "-m", "benchmarks.compare", "--equal", *session.posargs)
    session.run("python", "-m", "pytest", "-q", "benchmarks")


@nox.session
def sanitize(session: nox.Session) -> None:
    """The core's tests on instrumented builds: `-- address` or `-- thread` for one of the two."""
    install_needs(session, "test")
    for kind in session.posargs or ["address", "thread"]:
        session.run("bash", ".ci/sanitize", kind, external=True)


def archive_of_apt() -> str:
    """The URL of the Debian archive that apt uses here. Raises OSError without apt."""
    command = ("apt-get", "--print-uris", "download", "base-files")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return re.findall(r"'(\S+?)/pool/", done.stdout)[0]
    except (subprocess.CalledProcessError, IndexError) as error:
        raise OSError(f"apt does not name its archive: {error}") from error


def free_threaded_python(session: nox.Session) -> str:
    """The one in PATH, or one built in build/, which takes four minutes on two cores."""
    found = shutil.which(FREE_THREADED)
    prefix = ROOT / "build" / "free-threaded"
    python = prefix / "bin" / FREE_THREADED
    if found or python.exists():
        return found or str(python)
    with folder() as work:
        try:
            with urllib.request.urlopen(archive_of_apt() + SOURCE, timeout=60) as answer:
                (work / "source.tar.xz").write_bytes(answer.read())
        except OSError as error:
            session.skip(f"no {FREE_THREADED}, and no source to build it from: {error}")
        digest = hashlib.sha256((work / "source.tar.xz").read_bytes()).hexdigest()
        if digest != DIGEST:
            session.error(f"{SOURCE} has the SHA-256 {digest}, not {DIGEST}")
        with session.chdir(work):
            commands = (
                ("tar", "xf", "source.tar.xz", "--strip-components=1"),
                ("./configure", "-q", "--disable-gil", f"--prefix={prefix}"),
                ("make", "-s", f"-j{os.cpu_count()}"),
                ("make", "-s", "install"),
            )
            for command in commands:
                session.run(*command, external=True, silent=True)
    return str(python)


@nox.session(python=False)
def free_threads(session: nox.Session) -> None:
    """Threads on a CPython without its global lock; `-- 3600` repeats some tests for an hour."""
    with folder() as work:
        session.run(free_threaded_python(session), "-m", "venv", str(work / "venv"), external=True)

        def python(*arguments: str, silent: bool = False) -> None:
            command = str(work / "venv" / "bin" / "python")
            session.run(command, *arguments, external=True, silent=silent)

        needs = ("pytest", "pytest-benchmark", "hypothesis", "tiktoken")
        wheels = ("-m", "pip", "install", "-q", "--only-binary=:all:")
        python(*wheels, *BUILD, *METADATA["project"]["dependencies"], *needs)
        copy_tree(work / "tree", "*.c", "*.so")
        with session.chdir(work / "tree"):
            python("setup.py", "-q", "build_ext", "--inplace", silent=True)
            python("-c", "import sys, streamtok; sys.exit(sys._is_gil_enabled())")
            session.env["PYTHON_GIL"] = "0"  # even if other tokenizers ask for the lock
            tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
            python(*tests, *FREE_TESTS)
            end = time.monotonic() + float(session.posargs[0] if session.posargs else 0)
            while time.monotonic() < end:
                python(*tests, "-x", *SHARING)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Two of the long-running programs, a minute each: `-- streams --seconds 600` runs one for
    longer.
    """
    use_checkout(session, "test")
    for arguments in [session.posargs] if session.posargs else [["cuts"], ["streams"]]:
        session.run("python", "-m", "tests.long", *arguments)
