"""Steps: the axiom of `Step.apply`, what sequences of them make together, specs, settings."""

import pickle
import random

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
from streamtok.normalizers.elements import CodePoints
from streamtok.normalizers.step import BEGIN, END, FIRST, WHOLE

from .cuts import check, check_all_cuts
from .random_steps import STEPS, random_text

PLACES = (0, BEGIN, BEGIN | FIRST, END, BEGIN | END, WHOLE)

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


class Border:
    """Whether a step says that a text can be cut between two characters."""

    def __init__(self, step):
        interest = step.interest()
        self.holds, self.joins = CodePoints(interest.holds), CodePoints(interest.joins)
        self.holds_any, self.joins_any = map(CodePoints, (interest.holds_any, interest.joins_any))

    def between(self, one, next):
        are_joined = one in self.holds and next in self.joins
        return not (one in self.holds_any or next in self.joins_any or are_joined)


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_the_axiom(number):
    rng = random.Random(number)
    n_borders = 0
    for _ in range(25):
        step = STEPS[number](rng)
        border = Border(step)
        for _ in range(25):
            text = random_text(rng)
            if len(text) < 2:
                continue
            cut = rng.randint(1, len(text) - 1)
            a, b = text[:cut], text[cut:]
            if not border.between(a[-1], b[0]):
                continue
            n_borders += 1
            for where in PLACES:
                if where & BEGIN and not step.apply(a, where & ~END):
                    continue  # the two are asked for together
                parts = step.apply(a, where & ~END), step.apply(b, where & END)
                assert step.apply(text, where) == "".join(parts), (step.spec[:1], a, b, where)
            if text[-1] not in border.holds:
                assert step.apply(text, END) == step.apply(text, 0)
    assert n_borders > 100
