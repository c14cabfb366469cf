"""What `tests.put_back` changes is in the sources word for word."""

from __future__ import annotations

import pytest

from .. import put_back


@pytest.mark.parametrize("defect", put_back.DEFECTS, ids=lambda defect: defect.number)
def test_every_defect_can_be_put_back(defect: put_back.Defect) -> None:
    for change in defect.changes:
        assert change.old in (put_back.ROOT / change.path).read_text("utf-8"), change.path
