"""How llama.cpp cuts text for BPE models, by the name in the key `tokenizer.ggml.pre`.

The names and the regular expressions are those of its `src/llama-vocab.cpp`. If a name has several
patterns, each cuts the results of the one before; text between two matches is a pre-token, too.
llama.cpp knows no case beyond ASCII: in its patterns, `\\p{Lu}` matches every letter, as `\\p{L}`
does, and look-aheads tell upper and lower case apart in ASCII only. The patterns here do the same.

Not included are names whose pre-tokenizer is hand-written or has no DFA (kimi-k2, afmoe, superbpe,
tiny_aya, cohere2moe), and names of models that do not merge bytes (whitespace, sarvam-moe).
(github.com/ggml-org/llama.cpp, MIT)
"""

from __future__ import annotations

from ..patterns.named import DEEPSEEK_V3_PATTERNS, GPT2_PATTERN, PATTERNS

__all__ = ["LOOKED_UP", "PRE_TOKENIZERS"]

# Greek, Latin, Cyrillic, Armenian, Cherokee and others, as DeepSeek LLM lists them.
_ALPHABETS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-"
    "\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-"
    "\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-"
    "\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc"
    "\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-"
    "\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-"
    "\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-"
    "\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-"
    "\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-"
    "\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-"
    "\U000118df\U0001e900-\U0001e943"
)
_CHINESE = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_ENDINGS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r"| ?[^\s\p{L}\p{N}]+"
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_NOT_SPACES = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_SHORTER_SPACES = "".join(rf"|\s{{{2**n}}}(?!\S)" for n in range(9, 1, -1))


def _cased(letter: str, ending: str, digits: str) -> str:
    """Like GPT-4o's pattern: case changes at most once in a word. letter: the set of letters."""
    upper, lower = f"(?:(?![a-z]){letter})", f"(?:(?![A-Z]){letter})"
    first = r"[^\r\n\p{L}\p{N}]?"
    return (
        f"{first}{upper}*{lower}+{ending}|{first}{upper}+{lower}*{ending}"
        rf"|{digits}{_SYMBOLS}[\r\n/]*{_SPACES}"
    )


_GPT2 = (GPT2_PATTERN,)
_DIGITS_APART = (r"\p{N}", GPT2_PATTERN)
_LLAMA3 = (PATTERNS["llama3"],)
_QWEN2 = (PATTERNS["qwen2"],)
_GPT4O = (_cased(r"\p{L}", f"{_ENDINGS}?", r"\p{N}{1,3}"),)

_NAMES: dict[tuple[str, ...], str] = {
    _LLAMA3: "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx "
    "smaug-bpe chatglm-bpe glm4 glm5",
    _GPT2: "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert "
    "jina-v1-en jina-v2-code roberta-bpe mpt olmo jais trillion granite-docling exaone4",
    _DIGITS_APART: "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
    _QWEN2: "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2",
    _GPT4O: "gpt-4o llama4 kanana2 talkie minimax-m2",
    DEEPSEEK_V3_PATTERNS: "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
    (_NOT_SPACES,): "poro-chat bloom gpt3-finnish",
    (_NOT_SPACES, r"\p{N}"): "viking",
    (r"[\p{P}\$\+<=>\^~\|]+", GPT2_PATTERN, r"\p{N}+", "[0-9][0-9][0-9]"): "default",
    (r"[\p{P}\$\+<=>\^~\|`]+", GPT2_PATTERN, "[0-9][0-9][0-9]"): "falcon",
    (
        "[\r\n]",
        rf"\s?[{_ALPHABETS}]+",
        "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
        r"\s+$",
        _CHINESE,
        r"\p{N}+",
    ): "deepseek-llm",
    ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CHINESE, r"\p{N}"): "deepseek-coder",
    (
        *DEEPSEEK_V3_PATTERNS[:2],
        DEEPSEEK_V3_PATTERNS[2].replace("[\r\n]*|\\s*[\r\n]+", "|[\r\n]"),
        r"\p{N}",
    ): "spark2_5",
    (
        "[\uac00-\ud7a3\u3131-\u318e]+"
        "|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
        "|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        _cased(r"[\p{L}\p{M}]", f"{_ENDINGS}?", r"\p{N}")
        .replace("(?![a-z])", "")
        .replace("(?![A-Z])", ""),
    ): "youtu",
    (
        rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*{_SPACES}",
    ): "qwen35",
    (_cased(r"\p{L}", "", r"\p{N}"),): "tekken",
    (_cased(r"[\p{L}\p{M}]", f"{_ENDINGS}?", r"\p{N}{1,3}"),): "granite-embed-multi-97m",
    (
        "<sentinel:[0-9]+>",
        "IMGIMG[A-I]{1,4}Z",
        "[\t\n]|    |  ",
        r"\p{N}",
        r"[\p{P}!-/:-@\[-`{-~]",
        GPT2_PATTERN,
    ): "chameleon",
    (
        rf"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|{_WORDS}|\p{{N}}{_SYMBOLS}[\r\n]*"
        r"|\s*[\r\n]|\s+(?!\S)|\s+",
    ): "bailingmoe bailingmoe2 llada-moe",
    (rf"{_ENDINGS}|{_WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+{_SPACES}",): "seed-coder",
    (rf"{_WORDS}|\p{{N}}{_SYMBOLS}[\r\n]*{_SPACES}",): "ufakzeka",
    (r"[^\n]+|[\n]+", *_QWEN2): "laguna",
    (
        rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
        rf"{_SYMBOLS}[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
    ): "exaone-moe",
    (
        r"\p{N}{1,3}",
        rf"{_ENDINGS}|{_WORDS}|\p{{N}}+{_SYMBOLS}[\r\n]*{_SPACES}",
    ): "minicpm5",
    (
        rf"{_ENDINGS}|{_WORDS}|\p{{N}}{{1,3}}{_SYMBOLS}[\r\n]*|\s*[\r\n]+{_SHORTER_SPACES}"
        r"|\s{1,2}(?!\S)|\s{1}",
    ): "jais-2",
}
PRE_TOKENIZERS = {name: patterns for patterns, names in _NAMES.items() for name in names.split()}
"""The patterns by name."""

LOOKED_UP = frozenset(
    (
        *("minicpm5", "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "glm4"),
        *("glm5", "midm-2.0", "lfm2", "jina-v5-nano", "youtu", "tekken", "granite-embed-multi-97m"),
    )
)
"""The names for which a pre-token that is a token becomes its id without merging."""
