"""HTML as a browser reads it, without one."""

from html.parser import HTMLParser

from layerboard.leaderboards.report.page import CollapsibleWriter, collapsibles

VOID = {"meta", "br", "path", "input", "link", "img", "hr", "col"}


class Reader(HTMLParser):
    """All tags with their attributes, all text, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or (tag == "path" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def values(self, attribute):
        return [value for _, attributes in self.tags if (value := attributes.get(attribute))]

    @property
    def text(self):
        return "".join(self.words)


def page_html(page):
    """The blocks of a page as the report shows them, under its title."""
    return str(CollapsibleWriter(page.backbones).html(collapsibles(page.blocks, page.title)))
