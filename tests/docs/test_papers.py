"""What stands in several papers of the project is the same in all."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import streamtok

from ..doc_blocks import load_tool

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # which pytest brings along

TOP = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))


def read(name: str) -> str:
    return (TOP / name).read_text("utf-8")


def test_version() -> None:
    assert PROJECT["project"]["version"] == streamtok.__version__
    assert f"\nversion: {streamtok.__version__}\n" in read("CITATION.cff")


def test_pythons() -> None:
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    (tested,) = re.findall(r"@nox.session\(python=\[(.*?)\]", read("noxfile.py"))
    assert re.findall(r'"(.*?)"', tested) == versions
    built = PROJECT["tool"]["cibuildwheel"]["build"].split()
    tags = [f"cp{one.replace('.', '')}" for one in versions]
    assert built == [f"{tag}-*" for tag in [*tags, f"{tags[-1]}t"]]


def test_pypi_gets_links_to_the_repository_that_releases() -> None:
    tool = load_tool("set_address")
    address, tag = "https://example.org/us/streamtok", "v1.2.3"
    pyproject = read("pyproject.toml")
    if "urls" in PROJECT["project"]:  # a release runs this test, too, when it has its address
        address = PROJECT["project"]["urls"]["Source"]
        tag = PROJECT["project"]["urls"]["Changelog"].split("/")[-2]
    else:
        pyproject = tool.with_urls(pyproject, address, tag)
    with pytest.raises(ValueError, match="an address already"):
        tool.with_urls(pyproject, address, tag)
    made = tomllib.loads(pyproject)["project"]
    urls = made.pop("urls")
    assert made.pop("readme") == "PYPI.md"
    assert made.items() <= PROJECT["project"].items()  # all else is as it was
    assert urls["Source"] == address
    files = [url for url in urls.values() if "/blob/" in url]
    readme = tool.with_absolute_links(read("README.md"), address, tag)
    targets = re.findall(r"\]\(([^()]+)\)", readme)
    files += [url for url in targets if url.startswith(address)]
    assert len(files) > 30
    for url in files:
        path = re.fullmatch(rf"{address}/(?:blob|raw)/{tag}/([^#]+)(?:#.*)?", url)
        assert path, url
        assert (TOP / path[1]).is_file(), url
    assert all(url.startswith(("https://", "#")) for url in targets)
    assert f"]({address}/raw/{tag}/docs/view/lanes.png)" in readme
    workflow = TOP / ".github" / "workflows" / "wheels.yml"
    if workflow.exists():  # copies outside of a checkout have no hidden folders
        for build in ("-m cibuildwheel", "-m build --sdist"):  # each job gives the address before
            steps = workflow.read_text("utf-8").split(build)[0].split("steps:")[-1]
            assert "tools/set_address.py" in steps


def test_tools_of_the_release_are_pinned() -> None:
    """Actions by commit, packages by hash; and no file names the host of an index of packages."""
    workflow = TOP / ".github" / "workflows" / "wheels.yml"
    if not workflow.exists():  # copies outside of a checkout have no hidden folders
        return
    text = workflow.read_text("utf-8")
    for used in re.findall(r"uses: (\S+)", text):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used), used
    installs = re.findall(r"pip install (.*)", text)
    assert set(installs) == {"--require-hashes -r .github/release-tools.txt"}
    for line in read(".github/release-tools.txt").splitlines():
        assert re.match(r"#|[\w.-]+==\S+.* \\$|    --hash=sha256:[0-9a-f]{64}", line), line
    for platform in ("manylinux_x86_64", "musllinux_aarch64", "macosx_arm64", "win_amd64"):
        assert f"platform: {platform}" in text


def test_wheels_are_tested_with_files_that_are_there() -> None:
    settings = PROJECT["tool"]["cibuildwheel"]
    (suite,) = settings["overrides"]
    for name in suite["test-sources"]:
        assert (TOP / name).exists(), name
    for command in (settings["test-command"], suite["test-command"]):
        assert "tools/check_wheel.py" in command
    assert (TOP / "tools" / "check_wheel.py").exists()


def test_extras_that_messages_and_pages_name_are_there() -> None:
    extras = set(PROJECT["project"]["optional-dependencies"])
    pages = [*(TOP / "docs").rglob("*.md"), *Path(streamtok.__file__).parent.rglob("*.py")]
    text = "".join(path.read_text("utf-8") for path in pages)
    named = set(re.findall(r"streamtok\[([a-z]+)\]", text))
    assert named <= extras
    assert {"zstd", "arrow", "metrics"} <= named
