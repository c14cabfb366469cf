"""A published list of short texts that break tokenizers, as bytes; many are no UTF-8."""

from __future__ import annotations

BLANKS = [
    b"", b" ", b"  ", b"   a", b"a ", b"a  ", b"a   b", b"\n", b"\n\n", b"\n \n", b" \n ", b"\n  x",
    b"\n  \n  x", b"\r\n", b"\r\n\r\n x", b" \r\n \t\n", b"\t\t a", b"a\n", b"a\n\n  b", b"x  \n",
    b"x  \n  ", b"\n" + b" " * 20, b"\n" + b" " * 20 + b"x", b"\n" + b" " * 20 + b"\n", b" " * 30,
    b"\xc2\xa0", b" \xc2\xa0 ", b"a\xc2\xa0b", b"\xe3\x80\x80x", b"\xe2\x80\xa8x", b"\xc2\x85 \n",
    b"\x0b\x0c\x1c\x1d \n", b"  \xe3\x80\x80\n", b"\n\xc2\xa0\n\xc2\xa0x", b"    return\n    x",
    b"\t\n\t\n\t", b" \n" * 5, b"\n " * 5, b"a \n" * 4, b"if x:\r\n\ty\r\n\r\n",
]
CONTRACTIONS = [
    b"it's", b"IT'S", b"we'll", b"WE'LL", b"they're", b"x've", b"x'd", b"x'm", b"x't", b"'", b"''",
    b"'s", b"''s", b"x'l", b"x'lx", b"x'r", b"x'ree", b"x'v", b"x'\xc5\xbf", b"x'\xc5\xbfa", b" 's",
    b"a'", b"a' b", b"don't'", b"\xe2\x80\x99s", b"o'clock", b"I'lll", b"'\xe2\x84\xaa", b"'Re'Ve",
    b"a's'd", b"'tis", b"rock'n'roll",
]
NUMBERS = [
    b"1", b"12", b"123", b"1234", b"1234567890", b"1 2 3", b"12,345.67", b"a1b2", b"\xc2\xb2\xc2\xb3",
    b"\xd9\xa1\xd9\xa2\xd9\xa3\xd9\xa4", b"\xe2\x85\xa7\xe2\x85\xa8", b"0x1F", b"1e10", b"v1.2.3",
    b"  42", b"\n42\n",
]
WORDS = [
    b"hello world", b"Hello", b"HELLO", b"helloWorld", b"HTTPServer", b"camelCaseABC", b"snake_case",
    b"don", b" the", b"antidisestablishmentarianism", b"aaaaaaaaaaaaaaaaaaaaaaaa", b"abababababab",
    b"zzzzzzzzzzzzzzzzzzzzzzzzzz", b"a.b.c", b"a/b/c//d", b"https://example.com/?q=1&r=2#x",
    b"<html><body>", b"#include <stdio.h>", b"$$$", b"!!!\n\n", b"...\n", b"-- --", b"========",
    b"----------------------------------------", b"/* x */", b"//\n//\n", b"a@b.c", b"[](){}",
    b"\\n\\t", b"x=y;\n", b"{\n  \"a\": 1\n}\n", b"|---|---|\n", b" !\n", b" //\n/", b"?/\n/\n",
    b"\x00", b"\x00\x01\x02", b"a\x00b", b"\x7f", b"\x1b[0m", b"A\xcc\x81", b"\xcc\x81\xcc\x81",
]
SCRIPTS = [
    text.encode()
    for text in [
        "é", "naïve café", "ÀÉÎ", "ß", "ﬁ", "日本語", "日本語テキスト", "你好，世界", "中文 english 中文",
        "한국어 텍스트", "안녕", "Привет мир", "ПРИВЕТ", "Ελληνικά", "עברית", "العربية", "हिन्दी पाठ",
        "ภาษาไทย", "தமிழ்", "ქართული", "Ⅷ", "ǅ", "ʰ", "ª", "İ", "ı", "ſ", "\u212a", "👍", "👩‍👩‍👧‍👦", "🏳️‍🌈",
        "🇫🇷🇩🇪", "a👍b", "👍👍👍", "\U0001f9d1\u200d\U0001f4bb x", "\u200b", "\u200d", "\ufeff", "\ufeffx",
        "\u0300", "e\u0301\u0301", "\ue000", "\U0010ffff", "\ufffd", "\ufffd\ufffd", "x\ufffdy",
        "\u3042\u309a", "ｶﾞ", "％", "“quoted”", "—", "…", "½", "①②③", "𝒳𝓎", "𐍈", "\U000e0041",
        "ꙮ", "Ա", "ა", "ᏸ", "ꮿ", "\u1e9e", "ÅÅ", "ệ", "ǲ's",
    ]
]
SPECIALS = [
    b"<|endoftext|>", b"<|endoftext|", b"<|endoftext", b"<|endof", b"<|", b"<", b"<|endofx",
    b"a<|endoftext|>b", b" <|endoftext|> ", b"  <|endoftext|>", b"\n  <|endoftext|>\n",
    b"<|endoftext|><|endoftext|>", b"<|endoftext|><|endof", b"<<|endoftext|>>", b"<|<|endoftext|>",
    b"x's<|endoftext|>'s", b"12<|endoftext|>34", b"\xe6\x97<|endoftext|>\xa5", b"<|eot_id|>",
    b"<|eot_id|>\n", b"<|eot_id|>\r\n", b"<|eot_id|> \n", b"<|fim_prefix|>x<|fim_suffix|>",
    b"<|endofprompt|>", b"<|endofpromp", b"<|begin_of_text|>\n\n", b"\xf0\x9f<|endoftext|>",
]
MALFORMED = [
    b"\x80", b"\xbf\xbf", b"a\x80b", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2a", b"\xe0\x80\x80",
    b"\xe0\x9f\xbf", b"\xe0\xa0", b"\xe2\x82", b"\xe2\x82a", b"\xe2\x28\xa1", b"\xed\xa0\x80",
    b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80", b"\xee\x80", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf",
    b"\xf0\x9f", b"\xf0\x9f\x91", b"\xf0\x9f\x91a", b"\xf0\x9f\xf0\x9f\x91\x8d", b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff", b"\xff\xfe", b"\xfe\xff\x00a",
    b" \xff ", b"\n\xff\n", b"\xff\xff\xff\xff", b"a\xe6\x97", b"\xe6\x97\xa5\xe6", b"\xe6\xe6\x97\xa5",
    b"1\xff2", b"'\xff's", b"\xc3\x28", b"\xc3\xa9\xc3", b"\xf0\x9f\x91\x8d\xf0\x9f\x91",
    b"\xef\xbf\xbd\xff", b"\xef\xbf", b"\xef\xbb\xbf\xff", b"  \x80\n  \x80", b"\xe2\x80\xa8\xe2\x80",
]

TEXTS: list[bytes] = [*BLANKS, *CONTRACTIONS, *NUMBERS, *WORDS, *SCRIPTS, *SPECIALS, *MALFORMED]

# Pre-tokens whose ids change far to the left when the last byte arrives: (encoding, text).
CASCADES = [
    ("cl100k_base", "imitégoritinboxedatakirammercryniduntaszanalconomorestsildeadcadeonneathsentrpkkelnhdamerdmcientooralletedsendlangoxxylinoadoptionsumentssoberroutrorer"),
    ("o200k_base", "raminspentestanseroekraanusdadhnaudukatéiricalehrerupraktanianzewaybeamorbenhavenirískarayinquenisolgfidetamaharleadjdeelmassiscejjäviventarakamutanesaruastragarbeananjobreyerdecbindoidhnelescarenvasuredisaoiumpootoodynermewearystraintrorer"),
    ("cl100k_base", "SqlParameterValueCollectionViewSetFontsprituspreadcrystate"),
    ("cl100k_base", "QEZHQNJVNWKCyxrkJEWNVLFrpkknbpdxCGRRCDSDFOPTESeyssoptrorer"),
    ("cl100k_base", " " * 148),
]
