"""The page in Japanese: every claim that is loose or wrong, with the article's number and ours, in Japanese."""

import re
from pathlib import Path

from tpmodel.book.pages.japanese import VERDICTS, corrected, said
from tpmodel.planner.evidence.claims import findings

ROOT = Path(__file__).resolve().parents[1]
JUDGED = {finding.id: finding for finding in findings() if finding.verdict in VERDICTS}
JAPANESE = r"[\u3040-\u30ff]"  # kana: no Chinese


def test_every_loose_or_wrong_claim_has_its_words_and_no_other():
    assert set(said()) == set(JUDGED) and len(said()) == len(corrected().rows)


def test_the_words_are_japanese_and_whole():
    for key, words in said().items():
        assert re.search(JAPANESE, words["quantity"]) and re.search(JAPANESE, words["why"]), key
        assert words["why"].endswith(("です。", "ます。", "ません。")), key
        assert not re.search(r"[a-z]+ [a-z]+ [a-z]+", words["why"]), f"{key}: an English sentence"


def test_the_numbers_are_the_findings():
    first = lambda text: float(re.match(r"-?[\d,.e+]+", text)[0].replace(",", ""))
    for key, (_, verdict, article, ours, why) in zip(said(), corrected().rows):
        found, times = JUDGED[key], 100 if "%" in article else 1
        assert verdict == VERDICTS[found.verdict] and "{" not in why
        for text, number in ((article, found.article), (ours, found.book_value)):
            assert abs(first(text) - times * number) <= 0.001 * abs(times * number), f"{key}: {text}"


def test_the_page_names_both_articles_and_types_no_count():
    text = (ROOT / "book" / "ja.md").read_text()
    sources = (ROOT / "book" / "sources.md").read_text()
    assert re.search("「.+?」", sources)[0] in text
    for address in re.findall(r"https://qiita[^>\s)]+", sources):
        assert address in text
    for name in ("rows", "recompute", "judged", "holds", "loose", "wrong"):
        assert f"{{n}}`claims.{name}`" in text


def test_the_built_page_says_its_language_and_has_fonts_for_it(book):
    page = (book / "book" / "ja.html").read_text()
    assert re.search(r'<section[^>]* lang="ja"', page)
    assert all(words["quantity"] in page for words in said().values())
    style = (book / "_static" / "book.css").read_text()
    stack = re.search(r'\[lang="ja"\] \{ font-family: ([^;]+);', style)[1]
    assert all(font in stack for font in ("Hiragino Sans", "Yu Gothic", "Noto Sans CJK JP"))
    assert stack.endswith("sans-serif")
    assert 'href="ja.html"' in (book / "book" / "index.html").read_text()
