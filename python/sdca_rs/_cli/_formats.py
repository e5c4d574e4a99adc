"""Formats of data, by the names of files. Nothing here takes long to import."""

import os

FORMATS = ("svmlight", "csv", "parquet", "npz")
COMPRESSED = (".gz", ".bz2")

_EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
}


def format_of(path: str) -> str:
    """Tell the format of a file by its name."""
    stem, extension = os.path.splitext(path.lower())
    if extension in COMPRESSED:
        extension = os.path.splitext(stem)[1]
    return _EXTENSIONS.get(extension, "svmlight")
