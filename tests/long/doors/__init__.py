"""Every family of models through every call, on one and several threads: a random program.

    python -m tests.long.doors --seconds 60
    python -m tests.long.doors --seconds 60 --seed 7 --threads 1,2,4
    python -m tests.long.doors --hf-settings --seconds 60
    python -m tests.long.doors --repeat 700000042

A round makes one encoding (`subjects.py`) and a few texts whose sizes lie around those at which
the code takes another path (`texts.py`), and asks every call for the ids (`calls.py`). They must be
those of the plainest one: a whole text, at once, on one thread. Short texts are compared with
`tokenizers`, too. With `--hf-settings`, threads use one `streamtok.hf` tokenizer while others
change its settings (`hf_settings.py`).

It is meant for builds with sanitizers (`.ci/sanitize`): a buffer that is too small for one model
and one call shows there before any id is wrong.
"""
