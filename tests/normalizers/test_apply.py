"""`apply` is what `tokenizers` does to a whole text, and the axiom of `Step.apply` holds."""

import random

import pytest

from streamtok.normalizers.elements import CodePoints
from streamtok.normalizers.step import BEGIN, END, FIRST, WHOLE

from .oracles import NORMALIZERS, PRE_TOKENIZERS
from .random_steps import NASTY, STEPS, random_text
from .test_against_tokenizers import ALL

PLACES = (0, BEGIN, BEGIN | FIRST, END, BEGIN | END, WHOLE)


@pytest.mark.parametrize("name", NORMALIZERS)
def test_nasty_texts(name):
    ours, theirs = NORMALIZERS[name]
    rng = random.Random(name)
    for text in [*NASTY, *(random_text(rng) for _ in range(200))]:
        assert ours.apply(text) == theirs.normalize_str(text)


@pytest.mark.parametrize("name", ["always", "first", "never"])
def test_metaspace(name):
    ours, theirs = PRE_TOKENIZERS[name]
    rng = random.Random(name)
    for text in [*NASTY, *(random_text(rng) for _ in range(200))]:
        assert ours.apply(text) == "".join(part for part, _ in theirs.pre_tokenize_str(text))


@pytest.mark.parametrize("name", NORMALIZERS)
def test_all_characters(name):
    ours, theirs = NORMALIZERS[name]
    text = "\n".join(ALL)
    assert ours.apply(text) == theirs.normalize_str(text)


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
