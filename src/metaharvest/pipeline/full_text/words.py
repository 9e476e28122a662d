"""Words in links to files, in the languages of many repositories, and words in links to anything else.

Texts are compared in lower case, as words. Languages without blanks between words are compared as parts of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]+")

_FULL_TEXT = (
    "pdf", "full text", "fulltext", "full article", "full paper", "whole text", "read article", "view article",
    "texte intégral", "texte complet", "plein texte", "document complet", "volltext", "gesamter text", "ganzer text",
    "texto completo", "texto íntegro", "documento completo", "texto integral", "testo completo", "testo integrale",
    "volledige tekst", "fulltekst", "fuldtekst", "fulltext", "koko teksti", "kokoteksti", "pełny tekst", "plný text",
    "plné znění", "teljes szöveg", "tam metin", "полный текст", "повний текст", "пълен текст", "цео текст",
    "cijeli tekst", "puni tekst", "celotno besedilo", "textul integral", "text complet", "πλήρες κείμενο",
    "täistekst", "pilnas tekstas", "pilns teksts", "toàn văn", "teks lengkap", "naskah lengkap", "testu osoa",
    "النص الكامل", "متن کامل", "טקסט מלא", "全文", "本文", "原文", "원문", "전문", "pdf下载",
)  # fmt: skip
_DOWNLOAD = (
    "download", "downloads", "télécharger", "téléchargement", "herunterladen", "descargar", "descarga", "descarregar",
    "baixar", "transferir", "scarica", "downloaden", "ladda ner", "ladda ned", "last ned", "hent", "lataa", "pobierz",
    "stáhnout", "stiahnuť", "letöltés", "indir", "скачать", "загрузить", "завантажити", "изтегли", "преузми",
    "preuzmi", "prenesi", "descarcă", "descărcare", "λήψη", "unduh", "tải về", "laadi alla", "atsisiųsti",
    "lejupielādēt", "تحميل", "دانلود", "הורדה", "下载", "下載", "ダウンロード", "다운로드", "view file", "open file",
    "view open", "voir ouvrir", "ver abrir", "visualizar abrir", "anzeigen öffnen", "access document", "get file",
    "view document", "open document", "see document", "consulter le document",
)  # fmt: skip
_OTHER = (
    "supplement", "supplements", "supplementary", "supplemental", "supporting information", "suppl", "suppinfo",
    "cover", "couverture", "umschlag", "titelblatt", "deckblatt", "portada", "capa", "copertina", "licence",
    "license", "licencia", "licença", "licenza", "lizenz", "licentie", "copyright", "guideline", "guidelines",
    "richtlinien", "leitfaden", "directrices", "consignes", "instructions", "diretrizes", "terms", "conditions",
    "nutzungsbedingungen", "mentions légales", "agreement", "vertrag", "consent", "declaration",
    "thumbnail", "thumb", "vignette", "policy", "policies", "política", "politique", "privacy",
    "datenschutz", "confidentialité", "cookie", "cookies", "impressum", "imprint", "disclaimer", "hilfe",
    "aide", "faq", "manual", "handbuch", "user guide", "tutorial", "brochure", "flyer", "leaflet", "poster", "slides",
    "bibtex", "ris", "endnote", "refworks", "marc", "mods", "citation", "citations", "zitieren", "cite", "metadata",
    "metadaten", "toc", "table of contents", "inhaltsverzeichnis", "table des matières", "sommaire", "índice",
    "review report", "peer review", "cv", "template", "vorlage", "formulaire", "formular", "annual report",
    "newsletter", "call for papers", "submission", "author information", "editorial board", "full issue",
    "complete issue", "whole issue", "numéro complet", "número completo", "gesamtes heft", "errata", "erratum",
    "graphical abstract", "dataset", "press release", "sitemap", "statistics",
    "plugin", "acrobat", "checklist", "accessibility", "opt out", "take down", "takedown",
    "用户手册", "許諾", "规定", "指南", "封面", "目录", "目次", "附件", "補足", "부록",
)  # fmt: skip


class Phrases:
    """A set of words and phrases."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._single: set[str] = set()
        self._several: dict[str, list[str]] = {}
        self._parts: list[str] = []
        for phrase in phrases:
            words = tuple(_WORD.findall(phrase))
            if any("\u2e80" <= letter <= "\ud7a3" for letter in phrase):
                self._parts.append(phrase)
            elif len(words) == 1:
                self._single.add(words[0])
            else:
                self._several.setdefault(words[0], []).append(f" {' '.join(words)} ")

    def are_in(self, words: list[str], text: str) -> bool:
        """True if the text, with these words, has one of the phrases."""
        if not self._single.isdisjoint(words) or any(part in text for part in self._parts):
            return True
        begun = [phrase for word in words for phrase in self._several.get(word, ())]
        row = f" {' '.join(words)} " if begun else ""
        return any(phrase in row for phrase in begun)


FULL_TEXT = Phrases(_FULL_TEXT)
DOWNLOAD = Phrases(_DOWNLOAD)
OTHER = Phrases(_OTHER)


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case; digits and signs separate words."""
    return _WORD.findall(text.lower())
