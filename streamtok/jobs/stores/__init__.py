"""Objects in stores such as S3, by their URLs, through fsspec (the extra `fs` installs it).

`urls` tells URLs from paths, `objects` reads and writes whole objects, `object_reader` reads an
object as a file or in blocks, and `places` does the same for paths and URLs alike. This package
does not know documents or ids. (github.com/fsspec/filesystem_spec, BSD-3-Clause)
"""
