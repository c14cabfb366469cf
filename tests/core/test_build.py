"""The core that the tests use was built from the sources beside it."""

from __future__ import annotations

import importlib
import sysconfig
from pathlib import Path

import streamtok

CORE = Path(streamtok.__file__).parent / "_core"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def test_the_core_is_that_of_its_sources() -> None:
    """Of a checkout; where the package is installed, it has no sources beside it."""
    sources = [*CORE.rglob("*.px[di]"), *CORE.rglob("*.h")] if list(CORE.glob("*.pyx")) else []
    built = {path.name.removesuffix(SUFFIX): path for path in CORE.glob(f"*{SUFFIX}")}
    built = {unit: path for unit, path in built.items() if not sources or own(unit).exists()}
    assert built
    for unit, path in built.items():
        assert importlib.import_module(f"streamtok._core.{unit}").__file__ == str(path)
        for source in [*sources, own(unit)] if sources else []:
            assert path.stat().st_mtime >= source.stat().st_mtime, (
                f"{source.name} is newer than {path.name}: run python setup.py build_ext --inplace"
            )


def own(unit: str) -> Path:
    here = Path(__file__).with_name(f"{unit}.pyx")  # of what only tests call
    return here if here.exists() else CORE / here.name
