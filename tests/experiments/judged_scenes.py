"""Judgments of the scenes of a test split, in the files of Flickr8k."""


def write_judgments(dataset, folder):
    """Everybody likes a scene's own caption, some like the next one's."""
    crowd, expert = [], []
    test = dataset.split("test").tolist()
    for i, other in zip(test, [*test[1:], test[0]], strict=True):
        image = dataset.image_ids[i]
        own, next_one = (dataset.caption_ids[k][2] for k in (i, other))
        n_yes = i % 4
        crowd.append(f"{image}\t{own}\t1\t3\t0")
        crowd.append(f"{image}\t{next_one}\t{n_yes / 3}\t{n_yes}\t{3 - n_yes}")
        expert += [f"{image}\t{own}\t4\t4\t4", f"{image}\t{next_one}\t1\t{1 + n_yes}\t4"]
    for name, rows in (("CrowdFlowerAnnotations", crowd), ("ExpertAnnotations", expert)):
        (folder / f"{name}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
