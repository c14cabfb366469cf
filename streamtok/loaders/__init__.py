"""Ids for training: files of ids as records, and blocks of a fixed length for each process.

`token_files` reads records by their number, without reading what is before them. `token_blocks`
deals them to processes and cuts them into blocks. Neither knows PyTorch; the guide
`docs/howto/pytorch.md` has the few lines that connect them.
"""
