"""What can be checked, one session each: `nox -l` lists them, `nox -s lint quick` runs two.

`.ci/run` runs the same sessions in a fresh copy of the tree. What stands after `--` goes to the
session's command: `nox -s tests-3.12 -- -k decoder`.

Sessions on the checkout install what streamtok needs, but not streamtok: `python` imports it from
this folder, where only the changed parts of its core are compiled again. They keep their
environments. Sessions on a package (`tests`, `wheel`) start from nothing each time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
SHARED = ROOT.parent / "shared"
CORE = ROOT / "streamtok" / "_core"
SOURCES = ("*.pyx", "*.pxd", "*.pxi", "*.h")
METADATA = nox.project.load_toml(ROOT / "pyproject.toml")
EXTRAS = METADATA["project"]["optional-dependencies"]
BUILD = METADATA["build-system"]["requires"]

# A minute on two cores: the law on small texts, some tests of each package and of the docstrings.
QUICK = [
    "tests/api/test_laws.py",
    "tests/api/test_encoding.py",
    "tests/api/test_stream_decoder.py",
    "tests/core/test_special.py",
    "tests/core/test_utf8.py",
    "tests/docs/test_docstrings.py",
    "tests/formats/test_formats.py",
    "tests/formats/test_merge_lists.py",
    "tests/patterns/test_stand_ins.py",
    "tests/pipeline/test_sinks.py",
    "tests/pipeline/test_sources.py",
    "tests/reference",
    "tests/serve/test_serve.py",
    "tests/training/test_trainer.py",
]

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["lint", "types", "quick", "docs"]
nox.options.reuse_venv = "yes"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False

# Versions that pyenv has, but does not show on PATH now, are found, too: after all others.
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
VERSIONS = sorted(map(str, PYENV.glob("versions/3.*/bin")))
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *VERSIONS])


def install_needs(session: nox.Session, *extras: str) -> None:
    """Install what streamtok and these extras need, and what builds the core."""
    needs = [need for extra in extras for need in EXTRAS[extra]]
    session.install(*BUILD, *METADATA["project"]["dependencies"], *needs)


def use_checkout(session: nox.Session, *extras: str) -> None:
    """Install what is needed, and build the core in this folder if its sources are newer.

    Without looking first, each new environment would compile all again: pip gives NumPy's `.pxd`
    files the time of their installation, and setup.py takes them for changed sources.
    """
    install_needs(session, *extras)
    command = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
    suffix = str(session.run("python", "-c", command, silent=True, log=False)).strip()
    built = [path.stat().st_mtime for path in CORE.glob(f"*{suffix}")]
    sources = [ROOT / "setup.py", *(path for kind in SOURCES for path in CORE.glob(kind))]
    if not built or min(built) < max(path.stat().st_mtime for path in sources):
        session.run("python", "setup.py", "build_ext", "--inplace", silent=True)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that no checkout is above of."""
    with tempfile.TemporaryDirectory(prefix="streamtok-") as name:
        yield Path(name)


def run_installed(session: nox.Session, package: Path, above: Path, *arguments: str) -> None:
    """Install a wheel or an sdist and run the tests on it, from a copy of them under `above`."""
    session.install(f"{package}[test]")
    outside = above / "outside"
    # All but the package, so that `streamtok` can only be the installed one.
    others = ["streamtok", "build", "dist", "*.egg-info", ".*"]
    shutil.copytree(ROOT, outside, ignore=lambda path, names: leave_out(path, names, others))
    if SHARED.is_dir():
        (above / "shared").symlink_to(SHARED)
    with session.chdir(outside):
        session.run(
            "python",
            "-c",
            "import sys, streamtok; print('Python', sys.version.split()[0], streamtok.__file__); "
            "assert 'site-packages' in streamtok.__file__",
        )
        session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)


def leave_out(path: str, names: list[str], patterns: list[str]) -> set[str]:
    """What of the top folder is not copied."""
    return shutil.ignore_patterns(*patterns)(path, names) if Path(path) == ROOT else set()


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules, order of imports and format; files that the documents name are there."""
    session.install(*(need for need in EXTRAS["lint"] if need.startswith("ruff")))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", "tools/check_names.py")


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
    """Some tests of each part, with fewer random examples: a minute."""
    use_checkout(session, "test")
    session.run(
        *("python", "-m", "pytest", "-q", "-n", "auto", *(session.posargs or QUICK)),
        env={"HYPOTHESIS_PROFILE": "sanitize"},
    )


@nox.session(python=["3.10", "3.11", "3.12", "3.13", "3.14"], reuse_venv=False)
def tests(session: nox.Session) -> None:
    """All tests on one Python, on what the sdist builds, outside of the checkout."""
    install_needs(session)
    session.install("build")
    with folder() as work:
        command = ("python", "-m", "build", "--no-isolation", "--sdist", "--outdir", str(work))
        session.run(*command, silent=True)
        (sdist,) = work.glob("*.tar.gz")
        run_installed(session, sdist, work, *(session.posargs or ["-n", "auto"]))


@nox.session(reuse_venv=False)
def wheel(session: nox.Session) -> None:
    """All tests on the wheel that the sdist builds, outside of the checkout."""
    session.install("build")
    with folder() as work:
        session.run("python", "-m", "build", "--outdir", str(work), ".", silent=True)
        (built,) = work.glob("*.whl")
        run_installed(session, built, work, *(session.posargs or ["-n", "auto"]))


@nox.session
def docs(session: nox.Session) -> None:
    """The documents' examples: recipes, the service, docstrings."""
    use_checkout(session, "test")
    session.run("python", "-m", "pytest", "-q", "-n", "auto", *(session.posargs or ["tests/docs"]))


@nox.session
def hints(session: nox.Session) -> None:
    """The Cython compiler has no performance hints for the core."""
    session.install(*BUILD)
    with folder() as work:
        needed = ["setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE", "streamtok"]
        for name in needed:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, work / name)
        for made in work.glob("streamtok/_core/*.c"):
            made.unlink()
        with session.chdir(work):
            # setup.py compiles .pyx files whatever it is asked for; those for tests, too.
            said = session.run(
                *("python", "setup.py", "--name"), silent=True, env={"STREAMTOK_TESTING": "1"}
            )
        for unit in work.glob("streamtok/_core/*.pyx"):
            if f"Cythonizing streamtok/_core/{unit.name}" not in str(said):
                session.error(f"{unit.name} was not compiled:\n{said}")
    found = [line for line in str(said).splitlines() if "performance hint" in line]
    if found:
        session.error("\n".join(found))


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Equal ids from all that the benchmarks time; nothing is timed."""
    use_checkout(session, "test")
    session.run(
        "python", "-m", "pytest", "-q", "benchmarks", "--benchmark-disable", *session.posargs
    )


@nox.session
def sanitize(session: nox.Session) -> None:
    """The core's tests on instrumented builds: `-- address` or `-- thread` for one of the two."""
    install_needs(session, "test")
    for kind in session.posargs or ["address", "thread"]:
        session.run("bash", ".ci/sanitize", kind, external=True)


@nox.session
def fuzz(session: nox.Session) -> None:
    """The adversary, a minute of each kind: `-- --states --seconds 600` for one and longer."""
    use_checkout(session, "test")
    for options in (
        [session.posargs]
        if session.posargs
        else [["--seconds", "60"], ["--states", "--seconds", "60"]]
    ):
        session.run("python", "-m", "tests.fuzz", *options)
