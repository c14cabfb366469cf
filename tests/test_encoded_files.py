"""A few rounds of `tests.long.encoded_files`: inputs, options and formats of `encode`, crossed."""

from __future__ import annotations

import pytest

from .long.encoded_files import one_round


@pytest.mark.parametrize("seed", range(12))
def test_files_have_the_ids_of_each_document(seed: int) -> None:
    one_round(seed)
