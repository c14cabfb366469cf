"""Divides a job into independent parts: the plan, its parts, and the commit that joins them.

`plan` defines the parts, `part` runs one, `commit` checks them all and writes the manifest. The
files of a part depend only on the plan and the inputs, not on the process that runs it.
"""
