// Sample texts, each with a sentence that explains what it shows.

export const GENERAL = "Each box is a token: the model reads its number, not its letters.";

export const SAMPLES = [
  {
    name: "Words",
    says: "Each box is a token, which the model reads as one number: a frequent word is one, a rare word is " +
      "several, and a space belongs to the word after it.",
    text: "The cat sat on the mat, and the cat was happy.\n" +
      "Antidisestablishmentarianism is unbelievably overcomplicated; tokenization isn't.\n" +
      "Call me at 10:30 or email anna@example.com about order 1234567.\n",
  },
  {
    name: "Languages and emoji",
    says: "The same greeting costs more in a language that the vocabulary has seen less of; a character of several " +
      "tokens is one box, which you can open.",
    text: "Good morning, how are you?\nGuten Morgen, wie geht es dir?\nДоброе утро, как дела?\n" +
      "おはようございます、お元気ですか。\nसुप्रभात, आप कैसे हैं?\nမင်္ဂလာပါ နေကောင်းလား။\n👨‍👩‍👧‍👦 🎉 👍🏽 e\u0301\n",
  },
  {
    name: "Code",
    says: "Indentation, brackets and operators are tokens, too: often several characters are one, and a long name is many.",
    text: "def merge(pairs: dict[str, int]) -> int:\n    \"\"\"The lowest rank.\"\"\"\n" +
      "    for pair, rank in sorted(pairs.items()):\n        if rank != 0xFFFF_FFFF:\n            return rank\n" +
      "    raise LookupError(f\"no pair of {len(pairs):,}\")\n\n{\"id\": 1048576, \"url\": \"/v1/getUserAccountById\"}\n",
  },
];
