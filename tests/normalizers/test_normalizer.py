"""Sequences of steps: blocks put together, states, specs."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamtok.normalizers import IDENTITY, Normalizer, Replace
from streamtok.normalizers.links import LONGEST_HELD, held_by

from .cuts import check, check_all_cuts, in_chunks

FEW = st.text("abx", max_size=12)
REPLACE = st.builds(Replace, st.text("abx", min_size=1, max_size=3), st.text("abxy", max_size=3))


@given(st.lists(REPLACE, max_size=4), FEW, st.lists(st.integers(0, 12), max_size=6))
def test_steps_that_change_lengths_in_any_order(steps, text, cuts):
    check(Normalizer(steps), text, cuts)


def test_blocks_that_never_meet_still_come_out():
    normalizer = Normalizer([Replace("ab", "xyz"), Replace("zx", "q")])
    check_all_cuts(normalizer, "ab" * 4)
    state, blocks = normalizer.feed(normalizer.begin(), "ab" * 1000, final=False)
    assert "".join(text for text, _ in blocks) == "xy" + "qy" * 999
    assert held_by(state) == "ab" * (LONGEST_HELD // 2)  # the source goes with the last of its text


def test_long_runs_that_a_later_step_holds():
    pattern = "a" * 3000 + "b"
    normalizer = Normalizer([Replace("x", "a"), Replace(pattern, "!")])
    check(normalizer, "xa" * 1500 + "b", range(3001))
    check(normalizer, "xa" * 1600, range(3200))
    normalizer = Normalizer([Replace("x", "aa"), Replace(pattern, "!")])
    assert in_chunks(normalizer, ["x"] * 1500 + ["b"]) == "!"


def test_identity():
    assert IDENTITY.is_identity
    assert IDENTITY.spec == ()
    check_all_cuts(IDENTITY, "any")


def test_equal_specs_are_equal_normalizers():
    one, other = Normalizer([Replace("a", "b")]), Normalizer([Replace("a", "b")])
    assert one == other == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)
    assert one != IDENTITY
    assert not one.is_identity
    assert repr(one) == "Normalizer(('Replace', 'a', 'b'),)"


@pytest.mark.parametrize(
    "value",
    [None, 0, [], [1], [[0, []]], [[0, []], [1, []]],
     [[0, []], [0, [["a", "bc", True]]]], [[0, []], [0, [["a", "b"]]]], [[0, []], [0, ["a"]]],
     [[0, []], [0, [["a", "b", 1]]]], [[9, []], [0, []]], [[True, []], [0, []]],
     [[0, [["x", "y", True]]], [0, []]], [[0, []], [0, 7]]],
)  # fmt: skip
def test_forged_states_are_refused(value):
    with pytest.raises(ValueError):
        Normalizer([Replace("xy", "ab"), Replace("ab", "c")]).check_state(value)


def test_an_empty_string_cannot_be_replaced():
    with pytest.raises(ValueError, match="must not be empty"):
        Replace("", "a")
