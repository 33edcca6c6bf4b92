import csv
import gzip
import json
import lzma

import numpy as np
import pandas as pd
import pytest

from fiedler.errors import (
    DataNotFoundError,
    FiedlerWarning,
    FileFormatError,
    InputError,
    InputTypeError,
    MissingDependencyError,
)
from fiedler.io import read_documents, read_input

TEXTS = ["The river rose overnight.", "Banks raised rates, again.", "A naïve café owner sold the café."]


def write_csv(path, rows):
    path.write_text("id,text\n" + "\n".join(f'{i},"{text}"' for i, text in enumerate(rows)), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a").mkdir()
    for name, text in zip(("a/2.txt", "1.TXT", "a/3.txt"), TEXTS):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "notes.md").write_text("not a document")
    return tmp_path


def test_folder_is_read_recursively_in_order_of_names(folder):
    documents = read_documents(folder)
    assert documents.names == ["1.TXT", "a/2.txt", "a/3.txt"]
    assert documents.texts == [TEXTS[1], TEXTS[0], TEXTS[2]]


KINDS = ["csv", "tsv", "jsonl", "ndjson", "jsonl.gz", "csv.xz", "parquet", "feather", "arrow", "ipc", "xlsx", "txt"]


@pytest.mark.parametrize("kind", [*KINDS, "list"])
def test_every_source_gives_every_text(kind, tmp_path):
    path = tmp_path / f"documents.{kind}"
    lines = "\n\n".join(json.dumps({"text": text, "n": 1}) for text in TEXTS)
    if kind in ("csv", "tsv", "csv.xz"):
        write_csv(path, TEXTS)
        path.write_bytes(lzma.compress(path.read_bytes()) if kind == "csv.xz" else path.read_bytes())
    elif kind in ("jsonl", "ndjson"):
        path.write_text(lines)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif kind in ("parquet", "feather", "arrow", "ipc"):
        table = pytest.importorskip("pyarrow").table({"id": [1, 2, 3], "text": TEXTS})
        parquet, feather = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.feather")
        parquet.write_table(table, path) if kind == "parquet" else feather.write_feather(table, path)
    elif kind == "xlsx":
        pytest.importorskip("openpyxl")
        pd.DataFrame({"id": [1, 2, 3], "text": TEXTS}).to_excel(path, index=False)
    elif kind == "txt":
        path.write_text(TEXTS[2], encoding="utf-8")
    documents = read_documents(TEXTS if kind == "list" else path)
    assert documents.texts == (TEXTS[2:] if kind == "txt" else TEXTS)
    assert len(documents.names) == len(documents.texts)
    if kind != "list":
        assert documents.texts == read_input(path, text=None if kind == "txt" else "text").X


def test_line_break_within_a_csv_field_is_kept(tmp_path):
    write_csv(tmp_path / "a.csv", ["one\ntwo", "x" * 200_000])
    assert read_documents(tmp_path / "a.csv").texts == ["one\ntwo", "x" * 200_000]


def test_column_is_given_or_the_only_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("body\nfirst\nsecond\n")
    assert read_documents(path).texts == ["first", "second"]
    path.write_text("body,title\nfirst,t\nsecond,u\n")
    assert read_documents(path, column="title").texts == ["t", "u"]
    with pytest.raises(InputError, match=r"no column 'text'; its columns are 'body', 'title'") as caught:
        read_documents(path)
    assert caught.value.code == "no_such_column"
    fields = {"parameter": "column", "file": "a.csv", "column": "text", "columns": ["body", "title"]}
    assert caught.value.fields == fields
    with pytest.raises(InputError, match=r"did you mean 'title'\?"):
        read_documents(path, column="titel")


def test_texts_that_are_not_utf8_are_read_as_windows_1252_with_a_warning_that_names_the_files(folder):
    (folder / "bad.txt").write_bytes("caf\xe9 talk".encode("latin-1"))
    with pytest.warns(FiedlerWarning, match=r"^'bad.txt' is not UTF-8, and was read as Windows-1252") as caught:
        documents = read_documents(folder)
    assert caught[0].message.code == "not_utf8"
    assert documents.texts[documents.names.index("bad.txt")] == "caf\xe9 talk"
    (folder / "worse.txt").write_bytes(b"\xe9t\xe9")
    with pytest.warns(FiedlerWarning, match=r"^2 files \(bad.txt, worse.txt\) are not UTF-8, and were read") as caught:
        read_documents(folder)
    assert (len(caught), caught[0].message.fields["files"]) == (1, ["bad.txt", "worse.txt"])


def test_bytes_that_are_not_in_a_given_encoding_are_replaced_with_a_warning_that_names_the_files(folder):
    (folder / "bad.txt").write_bytes("caf\xe9 talk".encode("latin-1"))
    message = r"1 file\(s\) contain bytes that are not utf-8 \(bad.txt\).*encoding="
    with pytest.warns(FiedlerWarning, match=message) as caught:
        documents = read_documents(folder, encoding="utf-8")
    assert caught[0].message.code == "wrong_encoding"
    assert documents.texts[documents.names.index("bad.txt")] == "caf\ufffd talk"
    assert "caf\xe9 talk" in read_documents(folder, encoding="latin-1").texts


@pytest.mark.filterwarnings("ignore:.*Windows-1252")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32", "cp1252"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.txt", "a.csv.gz"])
def test_encodings_are_the_same_for_documents_and_rows(name, encoding, tmp_path):
    text = {"a.jsonl": '{"text": "Zürich"}\n', "a.txt": "Zürich"}.get(name, "text\nZürich\n").encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    column = {} if name == "a.txt" else {"text": "text"}

    assert read_documents(tmp_path / name).texts == ["Zürich"]
    assert read_input(tmp_path / name, **column).X == ["Zürich"]


def test_binary_content_is_no_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\x89PNG\0\xff")
    with pytest.raises(FileFormatError, match=r"'a.txt' is not UTF-8 text \(byte 0\)"):
        read_documents(tmp_path)


def test_empty_and_duplicate_documents_are_kept_with_warnings():
    texts = ["alpha", "", "beta", "alpha", "  \n", "alpha"]
    with pytest.warns(FiedlerWarning, match="are kept") as caught:
        documents = read_documents(texts)
    assert documents.texts == texts
    empty, duplicate = (warning.message for warning in caught)
    assert str(empty).startswith("2 document(s) are empty (1, 4)")
    assert (empty.code, empty.fields["n_documents"]) == ("empty_documents", 2)
    assert str(duplicate).startswith("2 document(s) are copies of others (3, 5)")
    assert (duplicate.code, duplicate.fields["n_documents"]) == ("duplicate_documents", 2)
    assert all(warning.filename == __file__ for warning in caught)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("text\nhello\n\nworld\n", ["hello", "", "world"]),
        ("\ufeffid,text\n1,one\n", ["one"]),
        ("id;text\n1;one, two\n", ["one, two"]),
        ("id\ttext\r\n1\tone\r\n", ["one"]),
    ],
)
def test_csv_dialects_are_read_completely(content, texts, tmp_path, recwarn):
    (tmp_path / "a.csv").write_bytes(content.encode())
    before = csv.field_size_limit()
    assert read_documents(tmp_path / "a.csv").texts == texts
    assert csv.field_size_limit() == before


def test_json_lines_with_byte_order_mark_and_windows_line_ends(tmp_path):
    (tmp_path / "a.jsonl").write_bytes('\ufeff{"text": "one"}\r\n{"text": null}\r\n"two"\r\n'.encode())
    with pytest.warns(UserWarning, match="are empty"):
        assert read_documents(tmp_path / "a.jsonl").texts == ["one", "", "two"]


def test_warnings_point_to_the_caller(folder):
    (folder / "bad.txt").write_bytes(b"caf\xe9")
    with pytest.warns(UserWarning, match="not UTF-8") as caught:
        read_documents(folder)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text\nhello, world\n", "line 2 has 2 fields where the header has 1"),
        ("a.csv", "id,text\n1,a,b\n", "line 2 has 3 fields where the header has 2"),
        ("a.csv", "text,text\na,b\n", "several columns 'text'"),
        ("a.csv", 'id,text\n1,"open\n2,x\n', "is not CSV"),
        ("a.jsonl", '{"text": "a"}\n{"title": "b"}\n', "line 2 has no field 'text'"),
        ("a.jsonl", '{"text": "x"}\n{oops\n', "line 2 is not JSON"),
        ("a.jsonl", '{"text": 3}\n', "int, not text"),
        ("a.jsonl", "[1]\n", "line 1 contains list, not text"),
        (
            "a.docx",
            "x",
            r"not a supported source of documents; pass a folder or a file that ends in .csv, .tsv, .*jsonl.*, .txt$",
        ),
        ("a.csv", "text\n", "contains no documents"),
        ("a.parquet", "no parquet", "cannot be read as Parquet"),
    ],
)
def test_unreadable_files_raise(name, content, message, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_documents(tmp_path / name)


def test_missing_field_names_file_line_and_column(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"title": "b"}\n')
    with pytest.raises(FileFormatError) as caught:
        read_documents(tmp_path / "a.jsonl")
    assert caught.value.code == "no_such_field"
    assert caught.value.fields == {"file": "a.jsonl", "line": 2, "column": "text"}


def test_missing_path_empty_folder_and_invalid_texts_raise(tmp_path):
    with pytest.raises(DataNotFoundError, match="no file or folder"):
        read_documents(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"contains no .txt files"):
        read_documents(tmp_path)
    for invalid in ({"a": "b"}, pd.DataFrame({"text": ["a"]}), None, 3):
        with pytest.raises(InputTypeError, match="must be a list of texts; got"):
            read_documents(invalid)
    with pytest.raises(DataNotFoundError, match=r"\.\.\.'; check the path; pass texts as a list"):
        read_documents("word " * 2000)
    with pytest.raises(InputTypeError, match="document 1 is float, not text"):
        read_documents(["a", np.nan])
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InputError, match="encoding='klingon' is unknown"):
        read_documents(tmp_path, encoding="klingon")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    def absent(*args, **kwargs):
        raise ImportError("no pyarrow")

    monkeypatch.setattr("fiedler._validation.importlib.import_module", absent)
    (tmp_path / "a.parquet").write_text("x")
    with pytest.raises(MissingDependencyError, match=r"pip install \"fiedler\[text\]\""):
        read_documents(tmp_path / "a.parquet")
