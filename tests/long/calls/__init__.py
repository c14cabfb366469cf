"""Every family of models through every call, on one and several threads.

A round makes one encoding (`subjects.py`) and a few texts whose sizes lie around those at which
the code takes another path (`texts.py`), and asks every call for the ids (`calls.py`). They must be
those of the plainest one: a whole text, at once, on one thread. Short texts are compared with
`tokenizers`, too. What is refused must be refused alike (`refusals.py`). In `hf_settings.py`,
threads use one `streamtok.hf` tokenizer while others change its settings.

It is meant for builds with sanitizers (`.ci/sanitize`): a buffer that is too small for one model
and one call shows there before any id is wrong.
"""
