"""Divides a job into independent parts: the plan, its parts, and the commit that joins them.

`plan` defines the parts, `part` runs one, `commit` checks them all and writes the manifest. A part
depends on the plan and the inputs only: its files are the same whichever process runs it, and
however often.
"""
