"""The headings of lists of references, and of what follows them, in many languages.

Each stands in lower case, without a number before it. A word stands in one line for all languages that have it.
"""

from __future__ import annotations

_REFERENCES = """
references|reference|references cited|reference list|list of references|references and notes|notes and references|
literature|literature cited|literature references|cited literature|cited references|bibliography|
selected bibliography|works cited|sources|sources cited|literatur|literaturverzeichnis|literaturangaben|
literaturliste|quellen|quellenverzeichnis|referenzen|schrifttum|zitierte literatur|quellen und literatur|références|
références bibliographiques|bibliographie|ouvrages cités|littérature citée|références citées|referencias|
referencias bibliográficas|bibliografía|bibliografía citada|literatura citada|obras citadas|referências|
referências bibliográficas|bibliografia|riferimenti|riferimenti bibliografici|bibliografia citata|
letteratura citata|opere citate|referenties|literatuur|literatuurlijst|geraadpleegde literatuur|bronnen|
bronvermelding|
referenser|källor|litteratur|källförteckning|litteraturförteckning|referencer|litteraturliste|referanser|
litteraturlista|lähteet|kirjallisuus|viitteet|lähdeluettelo|kirjallisuusluettelo|heimildir|heimildaskrá|
literatura|piśmiennictwo|spis literatury|źródła|literatura cytowana|použitá literatura|seznam literatury|zdroje|
seznam použité literatury|zoznam použitej literatúry|literatúra|použitá literatúra|irodalom|irodalomjegyzék|
hivatkozások|felhasznált irodalom|referințe|referințe bibliografice|bibliografie|izvori|popis literature|viri|
viri in literatura|kasutatud kirjandus|kirjandus|viited|izmantotā literatūra|literatūra|atsauces|naudota literatūra|
nuorodos|
referències|referències bibliogràfiques|bibliografia citada|erreferentziak|kaynaklar|kaynakça|
yararlanılan kaynaklar|βιβλιογραφία|αναφορές|βιβλιογραφικές αναφορές|daftar pustaka|daftar rujukan|rujukan|
referensi|tài liệu tham khảo|
литература|список литературы|список источников|библиография|библиографический список|источники|
список використаних джерел|література|джерела|список використаної літератури|използвана литература|
цитирана литература|извори|المراجع|المصادر|قائمة المراجع|مراجع|منابع|מקורות|ביבליוגרפיה|רשימת מקורות|
参考文献|參考文獻|参考資料|引用文献|引用文獻|文献|文献一覧|참고문헌|참고 문헌|인용문헌|เอกสารอ้างอิง|บรรณานุกรม|संदर्भ|सन्दर्भ|
"""

_OTHERS = """
appendix|appendices|supplement|supplementary material|supplementary materials|supplementary information|
supplementary data|supporting information|acknowledgement|acknowledgements|acknowledgment|acknowledgments|figures|
tables|figure captions|figure legends|table captions|list of figures|list of tables|author contributions|
authors' contributions|authors contributions|funding|conflict of interest|conflicts of interest|competing interests|
declaration of competing interest|data availability|data availability statement|about the author|about the authors|
author biography|biography|author information|additional information|publisher's note|ethics statement|glossary|
index|annex|annexes|credit authorship contribution statement|anhang|anhänge|danksagung|abbildungsverzeichnis|
tabellenverzeichnis|eidesstattliche erklärung|lebenslauf|annexe|remerciements|apéndice|apéndices|anexo|anexos|
agradecimientos|agradecimentos|apêndice|apêndices|appendice|appendici|allegati|ringraziamenti|bijlage|bijlagen|
dankwoord|bilaga|bilagor|tack|bilag|vedlegg|takk|liite|liitteet|kiitokset|załącznik|załączniki|podziękowania|
příloha|přílohy|poděkování|melléklet|mellékletek|anexe|prilog|prilozi|ekler|ek|teşekkür|παράρτημα|lampiran|phụ lục|
приложение|приложения|благодарности|додаток|додатки|附录|附錄|致谢|致謝|付録|謝辞|부록|감사의 글|الملاحق|ملحق|پیوست|
"""


def _parts(text: str) -> frozenset[str]:
    return frozenset(part for line in text.splitlines() for part in line.split("|") if part)


REFERENCES = _parts(_REFERENCES)
"""Of lists of references: 40 languages, from English to Korean."""

OTHERS = _parts(_OTHERS)
"""Of parts that follow a list of references."""
