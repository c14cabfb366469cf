"""Sequences of steps: what they make together, specs, settings."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamtok.normalizers import (
    Form,
    MetaspaceText,
    Normalizer,
    Replace,
    ReplaceRuns,
)

from .cuts import check, check_all_cuts

FEW = st.text("abx", max_size=12)
REPLACE = st.builds(Replace, st.text("abx", min_size=1, max_size=3), st.text("abxy", max_size=3))


@given(st.lists(REPLACE, max_size=4), FEW, st.lists(st.integers(0, 12), max_size=6))
def test_steps_that_change_lengths_in_any_order(steps, text, cuts):
    check(Normalizer(steps), text, cuts)


def test_long_runs_that_a_later_step_holds():
    pattern = "a" * 3000 + "b"
    normalizer = Normalizer([Replace("x", "a"), Replace(pattern, "!")])
    check(normalizer, "xa" * 1500 + "b", range(0, 3001, 7))
    check(normalizer, "xa" * 1600, range(0, 3200, 7))
    normalizer = Normalizer([Replace("x", "aa"), Replace(pattern, "!")])
    check(normalizer, "x" * 1500 + "b", range(0, 1500, 7))
    assert normalizer.normalize("x" * 1500 + "b") == "!"


def test_no_steps():
    assert not Normalizer()
    assert Normalizer().spec == ()
    check_all_cuts(Normalizer(), "any")


def test_equal_specs_are_equal_normalizers():
    one, other = Normalizer([Replace("a", "b")]), Normalizer([Replace("a", "b")])
    assert one == other == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)
    assert one
    assert one != Normalizer()
    assert repr(one) == "Normalizer(('Replace', 'a', 'b'),)"


def test_an_empty_string_cannot_be_replaced():
    with pytest.raises(ValueError, match="must not be empty"):
        Replace("", "a")


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="one character"):
        MetaspaceText("ab", "first")
    with pytest.raises(ValueError, match="prepend_scheme"):
        MetaspaceText("a", "second")
    with pytest.raises(ValueError, match="normalization form"):
        Form("NFX")
    for regex in ("a*", "(a)", "a|b", "[^\\S]", "[z-a]", "^a", "a{0,}", "[\\s-z]", "\\d", ""):
        with pytest.raises(ValueError, match=r"not supported|empty range"):
            ReplaceRuns(regex, "")
