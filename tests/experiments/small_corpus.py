"""A corpus of six photos, small enough to answer questions about it by hand."""

import numpy as np

CAPTIONS = {
    "dog": ("a brown dog runs on grass", "a dog barks at night"),
    "puppy": ("a small puppy runs on grass", "the puppy sleeps in a basket"),
    "boat": ("a white boat on the lake", "the boat sails on blue water"),
    "car": ("a red car on the street", "the car drives down a road"),
    "boy": ("a boy jumps", "the boy is jumping"),
    "girl": ("a girl sings", "the girl is singing"),
}
VECTORS = "dog 1 0 0\npuppy 0.9 0.1 0\nboat 0 1 0\ncar 0 0.8 0.4\nboy 0 0 1\ngirl 0 0 1\n"
TEST = ("puppy", "dog", "car", "boat")  # not in the order of the files
ROWS = sorted(TEST)
COLUMNS = [f"{name}#{number}" for name in TEST for number in (0, 1)]
CROWD, EXPERT = "CrowdFlowerAnnotations.txt", "ExpertAnnotations.txt"
NO, YES = "0\t0\t3", "0.666666666667\t2\t1"


def write_corpus(folder):
    """Write photos without content, captions and splits."""
    (folder / "images").mkdir()
    rows = [(name, *each) for name, texts in CAPTIONS.items() for each in enumerate(texts)]
    lines = [f"{name}.jpg#{number}\t{text}\n" for name, number, text in rows]
    (folder / "six.token.txt").write_text("".join(lines), encoding="utf-8")
    for name in CAPTIONS:
        (folder / "images" / f"{name}.jpg").touch()
    for split, names in (("train", ["boy"]), ("dev", ["girl"]), ("test", TEST)):
        text = "".join(f"{name}.jpg\n" for name in names)
        (folder / f"six.{split}Images.txt").write_text(text, encoding="utf-8")


def with_other_captions(folder, path, image_ids):
    """Give photos of a file of captions others, with words that no caption has."""
    lines = (folder / path).read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        if line.split("#")[0] in image_ids:
            lines[i] = line.split("\t")[0] + "\tA zebra dances on the moon ."
    (folder / path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def scores(values):
    """Scores of the pairs given, and 0 of all others."""
    matrix = np.zeros((len(ROWS), len(COLUMNS)), np.float32)
    for (photo, caption), value in values.items():
        matrix[ROWS.index(photo), COLUMNS.index(caption)] = value
    return matrix


OWN = scores({(caption[:-2], caption): 1 for caption in COLUMNS})


def write(folder, name, rows):
    """Write a file of judgments."""
    lines = [f"{photo}.jpg\t{own.replace('#', '.jpg#')}\t{rest}\n" for photo, own, rest in rows]
    (folder / name).write_text("".join(lines), encoding="utf-8")
