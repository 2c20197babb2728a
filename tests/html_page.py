"""Elements of a page of HTML."""

from html.parser import HTMLParser

VOID = {"meta", "img", "link", "input", "br", "source"}


class Page(HTMLParser):
    """Elements of a page with their attributes and texts; fails where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        own = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(own)
        if tag not in VOID:
            self.open.append(own)

    def handle_startendtag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", **dict(attributes)})

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for own in self.open:
            own["text"] += data

    def all(self, tag, **wanted):
        asked = {"tag": tag, **wanted}
        return [own for own in self.elements if asked.items() <= own.items()]

    def texts(self, tag, **wanted):
        return [" ".join(own["text"].split()) for own in self.all(tag, **wanted)]
