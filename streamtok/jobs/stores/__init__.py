"""Access to objects in stores such as S3, by URL, through fsspec (installed by the extra `fs`).

`urls` tells URLs from paths, `objects` reads and writes whole objects, `object_reader` reads an
object as a file or in blocks, and `places` does all of this for paths and URLs alike. This package
does not know documents or ids. (github.com/fsspec/filesystem_spec, BSD-3-Clause)
"""
