"""Recipes of RecipeQA as documents."""

import json

import pytest
from refusals import refuses

from kernelcore.datasets import DatasetWarning, Document, load_recipeqa


def step(body, *images):
    return {"body": body, "images": list(images), "id": 0, "title": "Step", "videos": []}


def question(recipe, *steps):
    return {"recipe_id": recipe, "context": list(steps), "task": "textual_cloze", "answer": 1}


def write(folder, split="val", *questions):
    path = folder / f"{split}.json"
    path.write_text(json.dumps({"version": "1.0", "data": list(questions)}), encoding="utf-8")
    return path


def test_steps_are_linked_to_their_photos(tmp_path):
    steps = [
        step(" Cut. ", "a.jpg", "b.jpg"),
        step("Wait."),
        step("", "c.jpg"),
        step("Eat.", "d"),
    ]
    write(tmp_path, "train", question("toast", *steps))
    recipes = load_recipeqa(tmp_path)
    assert recipes.name == "RecipeQA"
    links = {(0, 0), (0, 1), (2, 3)}  # no sentence for the step without text
    images = ("a.jpg", "b.jpg", "c.jpg", "d")
    assert recipes.split("train") == (
        Document("toast", ("Cut.", "Wait.", "Eat."), images, links),
    )
    assert recipes.split("val") == recipes.split("test") == ()


def test_a_recipe_of_several_questions_is_one_document_with_the_most_photos(tmp_path):
    write(
        tmp_path,
        "val",
        question("toast", step("Cut.")),
        question("soup", step("Boil.", "s.jpg")),
        question("toast", step("Cut.", "a.jpg")),
        question("toast", step("Fry.", "b.jpg")),
    )
    documents = load_recipeqa(tmp_path).split("val")
    assert [(d.doc_id, d.images) for d in documents] == [
        ("toast", ("a.jpg",)),
        ("soup", ("s.jpg",)),
    ]


def test_recipes_without_photos_or_text_are_left_out_and_named(tmp_path):
    kept = question("soup", step("Boil.", "s.jpg"))
    write(
        tmp_path, "test", question("toast", step("Cut.")), kept, question("ice", step("", "i"))
    )
    with pytest.warns(DatasetWarning, match=r"2 recipes without .*: toast, ice"):
        assert len(load_recipeqa(tmp_path)) == 1


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"context": []}, r"data\[1\] must have 'recipe_id'"),
        ({"recipe_id": "x"}, r"data\[1\] must have 'context'"),
        (question("x", {"images": []}), r"data\[1\] context\[0\] must have 'body'"),
        (
            question("x", step("One."), {"body": "a"}),
            r"data\[1\] context\[1\] must have 'images'",
        ),
        (
            question("x", step("One.", 3)),
            r"data\[1\] context\[0\] images\[0\] must be a string",
        ),
    ],
)
def test_a_damaged_question_is_named(tmp_path, entry, place):
    path = write(tmp_path, "val", question("toast", step("Cut.", "a.jpg")), entry)
    assert str(path) in refuses(ValueError, place, load_recipeqa, tmp_path)


def test_other_files_are_refused(tmp_path):
    refuses(FileNotFoundError, r"train\.json", load_recipeqa, tmp_path)
    path = tmp_path / "train.json"
    for text in ('{"data": 3}', "[]", '{"data": [3]}', '{"da'):
        path.write_text(text)
        refuses(ValueError, r"train\.json", load_recipeqa, tmp_path)
