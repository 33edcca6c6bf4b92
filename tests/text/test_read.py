import csv
import json

import numpy as np
import pandas as pd
import pytest

from fiedler.text import read as module
from fiedler.text import read_documents

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


def test_a_folder_is_read_by_name_with_what_lies_below(folder):
    documents = read_documents(folder)
    assert documents.names == ["1.TXT", "a/2.txt", "a/3.txt"]
    assert documents.texts == [TEXTS[1], TEXTS[0], TEXTS[2]]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "txt", "list"])
def test_every_source_gives_every_text(kind, tmp_path):
    path = tmp_path / f"documents.{kind}"
    if kind == "csv":
        write_csv(path, TEXTS)
    elif kind == "jsonl":
        path.write_text("\n\n".join(json.dumps({"text": text, "n": 1}) for text in TEXTS))
    elif kind == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pytest.importorskip("pyarrow").table({"id": [1, 2, 3], "text": TEXTS}), path)
    elif kind == "txt":
        path.write_text(TEXTS[2], encoding="utf-8")
    documents = read_documents(TEXTS if kind == "list" else path)
    assert documents.texts == (TEXTS[2:] if kind == "txt" else TEXTS)
    assert len(documents.names) == len(documents.texts)


def test_a_line_break_within_a_field_of_a_table_is_kept(tmp_path):
    write_csv(tmp_path / "a.csv", ["one\ntwo", "x" * 200_000])
    assert read_documents(tmp_path / "a.csv").texts == ["one\ntwo", "x" * 200_000]


def test_the_column_is_named_or_the_only_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("body\nfirst\nsecond\n")
    assert read_documents(path).texts == ["first", "second"]
    path.write_text("body,title\nfirst,t\nsecond,u\n")
    assert read_documents(path, column="title").texts == ["t", "u"]
    with pytest.raises(ValueError, match=r"no column 'text'; its columns are 'body', 'title'"):
        read_documents(path)


def test_unreadable_bytes_are_replaced_and_the_files_named(folder):
    (folder / "bad.txt").write_bytes("caf\xe9 talk".encode("latin-1"))
    with pytest.warns(UserWarning, match=r"1 file\(s\) hold bytes that are not utf-8 \(bad.txt\).*encoding="):
        documents = read_documents(folder)
    assert documents.texts[documents.names.index("bad.txt")] == "caf\ufffd talk"
    assert "caf\xe9 talk" in read_documents(folder, encoding="latin-1").texts


def test_empty_and_repeated_documents_are_kept_and_said():
    texts = ["alpha", "", "beta", "alpha", "  \n", "alpha"]
    with pytest.warns(UserWarning, match="are kept|all are kept") as caught:
        documents = read_documents(texts)
    assert documents.texts == texts
    said = [str(warning.message) for warning in caught]
    assert said[0].startswith("2 document(s) are empty (1, 4)")
    assert said[1].startswith("2 document(s) repeat another word for word (3, 5)")


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("text\nhello\n\nworld\n", ["hello", "", "world"]),
        ("\ufeffid,text\n1,one\n", ["one"]),
        ("id;text\n1;one, two\n", ["one, two"]),
        ("id\ttext\r\n1\tone\r\n", ["one"]),
    ],
)
def test_tables_of_other_make_lose_nothing(content, texts, tmp_path, recwarn):
    (tmp_path / "a.csv").write_bytes(content.encode())
    before = csv.field_size_limit()
    assert read_documents(tmp_path / "a.csv").texts == texts
    assert csv.field_size_limit() == before


def test_json_lines_with_a_mark_and_windows_ends(tmp_path):
    (tmp_path / "a.jsonl").write_bytes('\ufeff{"text": "one"}\r\n{"text": null}\r\n"two"\r\n'.encode())
    with pytest.warns(UserWarning, match="are empty"):
        assert read_documents(tmp_path / "a.jsonl").texts == ["one", "", "two"]


def test_warnings_point_at_the_caller(folder):
    (folder / "bad.txt").write_bytes(b"caf\xe9")
    with pytest.warns(UserWarning, match="not utf-8") as caught:
        read_documents(folder)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "text\nhello, world\n", "line 2 has 2 fields where the header has 1"),
        ("a.csv", "id,text\n1,a,b\n", "line 2 has 3 fields where the header has 2"),
        ("a.csv", "text,text\na,b\n", "several columns 'text'"),
        ("a.csv", 'id,text\n1,"open\n2,x\n', "is not CSV"),
        ("a.jsonl", '{"text": "a"}\n{"title": "b"}\n', "line 2 holds no field 'text'"),
        ("a.jsonl", '{"text": "x"}\n{oops\n', "line 2 is not JSON"),
        ("a.jsonl", '{"text": 3}\n', "int, not text"),
        ("a.jsonl", "[1]\n", "line 1 holds list, not text"),
        ("a.docx", "x", "no source of documents; these are: a folder, .csv, .jsonl, .parquet, .txt"),
        ("a.csv", "text\n", "holds no documents"),
        ("a.parquet", "no parquet", "cannot be read as Parquet"),
    ],
)
def test_what_cannot_be_read_ends_in_a_sentence(name, content, words, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=words):
        read_documents(tmp_path / name)


def test_a_missing_path_an_empty_folder_and_no_text_are_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        read_documents(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"holds no .txt files"):
        read_documents(tmp_path)
    for odd in ({"a": "b"}, pd.DataFrame({"text": ["a"]}), None, 3):
        with pytest.raises(TypeError, match="a list of texts, not"):
            read_documents(odd)
    with pytest.raises(FileNotFoundError, match=r"\.\.\.'; a list of texts"):
        read_documents("word " * 2000)
    with pytest.raises(TypeError, match="document 1 is float, not text"):
        read_documents(["a", np.nan])
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ValueError, match="encoding='klingon' is unknown"):
        read_documents(tmp_path, encoding="klingon")


def test_parquet_without_its_library_names_the_extra(tmp_path, monkeypatch):
    def absent(*args, **kwargs):
        raise ImportError("no pyarrow")

    monkeypatch.setattr("fiedler._validation.importlib.import_module", absent)
    (tmp_path / "a.parquet").write_text("x")
    with pytest.raises(ImportError, match=r"pip install \"fiedler\[text\]\""):
        module.read_documents(tmp_path / "a.parquet")
