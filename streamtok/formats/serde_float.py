"""Reads JSON numbers as serde_json and thus tokenizers do: often not as the nearest float64."""

from __future__ import annotations

import math

from ..errors import VocabularyError

__all__ = ["serde_float"]

_MAX_INTEGER = 2**64 - 1  # the largest integer that serde_json makes of digits
_SAFE_DIGITS = 19  # as many digits always fit
_LAST_POWER = 308
_POWERS = [float(f"1e{power}") for power in range(_LAST_POWER + 1)]
_MAX_EXPONENT = 10**6  # greater exponents are treated as this one
_MAX_DIGITS = 32  # digits of an exponent that are read


def serde_float(number: str) -> float:
    """The float64 of a JSON number that is not an integer.

    serde_json makes a 64-bit integer of as many digits as fit, rounds it to float64, and multiplies
    or divides it by a power of ten, which rounds again. The last bit may decide which of two paths
    of Unigram is better. Raises VocabularyError for a number that is out of range.

    >>> float("-3.4000000000000004") == serde_float("-3.4000000000000004")
    True
    >>> float("-9.000000000000002") == serde_float("-9.000000000000002")
    True
    """
    whole, _, fraction = number.partition(".")
    if len(number) <= _SAFE_DIGITS and fraction.isdigit():  # nearly all: few digits
        return int(whole + fraction) / _POWERS[len(fraction)]
    sign = -1.0 if number[0] == "-" else 1.0
    mantissa, _, power = number.lstrip("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    used = min(len(digits), _SAFE_DIGITS)
    value = int(digits[:used])
    while used < len(digits) and value * 10 + int(digits[used]) <= _MAX_INTEGER:
        value = value * 10 + int(digits[used])
        used += 1
    exponent = len(whole) - used
    if power:
        exponent += max(-_MAX_EXPONENT, min(int(power[:_MAX_DIGITS]), _MAX_EXPONENT))
    found = float(value)
    while found and exponent < -_LAST_POWER:
        found /= _POWERS[_LAST_POWER]
        exponent += _LAST_POWER
    if found and exponent < 0:
        found /= _POWERS[-exponent]
    elif found:
        found = found * _POWERS[exponent] if exponent <= _LAST_POWER else math.inf
    if found == math.inf:
        raise VocabularyError(f"the number {number[:60]} is out of range")
    return sign * found
