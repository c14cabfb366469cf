"""One job in independent parts: a plan, the parts of it, and the commit that joins them.

`plan` names the parts, `part` does one, `commit` checks them all and writes the manifest. A part
depends on the plan and the inputs only: whichever process runs it, and however often, its files are
the same.
"""
