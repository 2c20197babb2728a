import pytest

from kernelcore.lexical import read_tagged_corpus


def test_the_last_slash_divides_word_and_tag(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("either/or/cc  Käse/nn\n\n./.\n", encoding="utf-8")
    assert read_tagged_corpus(path) == [[("either/or", "cc"), ("Käse", "nn")], [(".", ".")]]


@pytest.mark.parametrize("token", ["dog", "/nn", "dog/", "/"])
def test_a_token_without_a_tag_is_named(tmp_path, token):
    path = tmp_path / "corpus.txt"
    path.write_text(f"a/at\nthe/at {token}\n")
    with pytest.raises(ValueError, match=r"corpus\.txt, line 2: tokens must be word/tag"):
        read_tagged_corpus(path)


def test_other_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_tagged_corpus(tmp_path / "nowhere.txt")
    (tmp_path / "latin.txt").write_bytes("Käse/nn".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.txt must be UTF-8"):
        read_tagged_corpus(tmp_path / "latin.txt")


@pytest.mark.realdata
def test_the_brown_corpus_is_read(data_root):
    sentences = read_tagged_corpus(data_root / "brown" / "brown_tagged.txt")
    assert len(sentences) == 57_340
    assert sentences[0][:2] == [("The", "at"), ("Fulton", "np-tl")]


def test_a_corpus_that_is_no_text(tmp_path):
    (tmp_path / "c.txt").write_bytes(b"a/b\n\xff")
    with pytest.raises(ValueError, match=r"c\.txt must be UTF-8 text, got byte 0xff in line 2"):
        read_tagged_corpus(tmp_path / "c.txt")
