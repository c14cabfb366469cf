"""Random `tokenizer.json` files: streamtok and `tokenizers` must give the same ids.

    python -m tests.long.random_tokenizers --cases 100_000 --seed 1 --workers 2
    python -m tests.long.random_tokenizers --pieces
    python -m tests.long.random_tokenizers --sentencepiece --cases 2000
    python -m tests.long.random_tokenizers --replay failures/12345.json

A case is the file of one seed, made by `tests/tokenizer_files.py`, and four texts for it. The file
goes through `tokenizers` and through `streamtok.load`. If streamtok refuses it, the case ends there
and is counted by the message. Else each text is

- encoded whole: the ids of `tokenizers` and of streamtok must be equal; and counted;
- streamed as bytes: cut once, at every place and byte by byte if it is of 16 bytes or less; else at
  five random places, and one text in two byte by byte; twice at two to six random places; and as a
  str at three random places. Before one chunk in ten the state is loaded into another stream;
- decoded, if decoding should be equal (`decodes_alike`).

On average a case has 3.6 texts and 35 streams; nine files in ten are not refused. `tokenizers`
panics on some files and texts; they are no cases.

A find is made small and saved as JSON. With several workers, processes check the cases, and the
outcomes come in any order. The case of a seed does not depend on how many workers there are. If a
worker is ended by a signal, or is silent for long, its seed is reported as a find.
"""
