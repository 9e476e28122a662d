"""Types of outputs as resource types of COAR, version 3. Pure.

https://vocabularies.coar-repositories.org/resource_types/ has the types. The words of many
repositories, of info:eu-repo, DataCite, DCMI, MODS and MARC, in nine languages, name them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from metaharvest.pipeline.letters import folded

BROADER = {
    **dict.fromkeys(("c_2df8fbb1", "c_dcae04bc", "c_beb9", "c_7bab", "c_7acd"), "c_6501"),
    **dict.fromkeys(("c_7a1f", "c_bdcc", "c_db06"), "c_46ec"),
    **dict.fromkeys(("c_18ww", "c_18wz", "c_18wq", "c_186u", "c_18op", "c_18ws", "c_18gh", "c_ab20"), "c_93fc"),
    **dict.fromkeys(("c_f744", "c_5794", "c_6670", "c_18cp", "c_18co", "R60J-J5BD"), "c_c94f"),
    **dict.fromkeys(("c_ecc8", "c_8a7e"), "c_c513"),
    "c_12ce": "c_8a7e",
    "c_ba08": "c_efa0",
    "c_3248": "c_2f33",
    "c_12cd": "c_12cc",
    "c_18cd": "c_18cc",
}
"""The next broader type of some types."""

_TABLE = """
c_6501 journal article: departmental bulletin paper | 紀要論文 | artikel jurnal | journal article/review |
  tidskriftsartikel | tidsskriftartikel | article | journal article |
  journalarticle | artículo | artigo | artigo de periódico | artigo científico | articolo | artikel |
  zeitschriftenartikel | zeitschriftenaufsatz | aufsatz | article de revue | article dans une revue |
  artículo de revista | article journal | articleinjournal | scientific article | article in journal |
  tidsskriftartikkel | peer-reviewed article | peer reviewed article | artículo revisado por pares |
  avaliado pelos pares | artykuł | makale | статья | wissenschaftlicher artikel | journal contribution | journalpaper |
  journal paper | contribution to journal | artículo científico | artículo original | artigo original |
  original article | text.serial.journal | 論文 | academicarticle | academic article | scholarly article |
  scholarlyarticle | peer-reviewed | magazine article | article in periodical | text.article | article-journal |
  vitenskapelig artikkel | tijdschriftartikel | articolo in rivista | published journal article | 学術雑誌論文 |
  期刊论文 | 期刊論文 | 学术论文 | 학술논문 | review-article | articol | članak | cikk | člen | published article |
  artigo de revista | artigo publicado | contributiontoperiodical
c_2df8fbb1 research article: research article | researcharticle | research paper | original research |
  original research article | research-article | originalarbeit | artículo de investigación | artigo de pesquisa |
  原著論文 | original paper
c_dcae04bc review article: review article | reviewarticle | systematic review | literature review | übersichtsartikel |
  artículo de revisión | artigo de revisão | revisión | scientific review | 総説 | reviewpaper | review paper
c_beb9 data paper: data paper | datapaper | data article | data descriptor | data note | data-paper
c_7bab software paper: software paper | software article | softwarepaper | software tool article
c_b239 editorial: editorial | editorial material | leitartikel | editoriale
c_545b letter to the editor: letter to the editor | lettertotheeditor | letter to editor | carta al editor |
  carta ao editor | correspondence
c_7acd corrigendum: corrigendum | erratum | correction | errata | retraction | errata-corrige
c_0640 journal: journal | zeitschrift | contribution to journal issue | journal issue | periodical | zeitschriftenheft |
  text.serial | serial | continuing resource | tidskrift | issue | journalissue | rivista | revue | revista
c_2fe3 newspaper: newspaper | zeitung | periodico | journal quotidien | krant
c_998f newspaper article: newspaper article | newspaperarticle | news article | news item | newsitem | zeitungsartikel |
  news | artículo periodístico | article-newspaper | artículo de prensa | feature article
c_2cd9 magazine: magazine | popular magazine
c_2f33 book: book edited | book | buch | libro | livro | livre | ouvrage | monograph | monographie | monografía | boek |
  bok | książka | kitap | книга | edited book | editedbook | bookitem | ebook | e-book | text.book | textbook |
  anthology | sammelband | herausgeberband | collected edition | edited volume | monographic | 図書 | 图书 | kniha |
  könyv | carte | literary work | obra literaria | direction d'ouvrage | collective work | editedcollection |
  book - authored | book - edited | authored book | scholarly book | handbook | encyclopedia | dictionary | ib |
  book/film/article review collection | reference work
c_3248 book part: part of book or chapter of book | book part | bookpart | book chapter | chapter | buchkapitel |
  buchbeitrag | capítulo de libro | capítulo de livro | parte ou capítulo de livro | capítulo | chapitre d'ouvrage |
  chapitre de livre | chapitre | beitrag in sammelband | book section | booksection | book item | hoofdstuk |
  bokkapittel | kapitel in buch | part of book | inbook | incollection | contribution to book/report |
  contribution to a book | contribution in book | bookchapter | rozdział | contributo in volume | encyclopedia entry |
  encyclopediaentry | beitrag zu einem sammelwerk | kapitel | parte di libro | entry-encyclopedia | book component |
  part of a book | aufsatz in sammelband | capitolo di libro | book_section | kapittel
c_ba08 book review: book review | bookreview | review of book | rezension | buchbesprechung | reseña | resenha |
  recensione | compte rendu | reseña de libro | buchrezension | recensie | compte rendu d'ouvrage | recensión |
  book/film/article review | review-book | 書評
c_efa0 review: review | critical review | kritik | product review
H9BQ-739P peer review: peer review | peerreview | referee report | peer-review
D97F-VB57 commentary: commentary | comment | kommentar | opinion | opinion piece | perspective | viewpoint | debate |
  comment/debate | essay
c_1162 annotation: annotation
c_86bc bibliography: bibliography | bibliographie | bibliografía
c_6947 blog post: blog post | blogpost | blog | weblog | blog entry | weblog entry | post-weblog
c_c94f conference output: conference output | conference object | conferenceobject | conference item |
  conference or workshop item | conference contribution | konferenzbeitrag | conference |
  communication dans un congrès | objeto de conferencia | comunicación | conferenceitem |
  conference or workshop item - other | conference abstract | meeting abstract | abstract | conference material |
  contribution to conference | konferenz | ponencia | comunicação | congresso | contributiontoconference |
  conference presentation/abstract | conference extract | kongressbeitrag | konferensbidrag | documento de conferencia |
  info:eu-repo/semantics/conferencecontribution | event | presentado en evento | evento | other conference item
c_f744 conference proceedings: conferenceproceedings | proceedings | conference proceeding | tagungsband |
  konferenzband | actas de congreso | anais | actes | atti di convegno | proceedings, peer-reviewed |
  conference volume | actas | konferenzveröffentlichung | proceedings of a conference
c_5794 conference paper: conference paper/proceeding/abstract | conference paper | conferencepaper | proceedings paper |
  inproceedings | conference article | paper in conference proceedings | artículo de conferencia |
  trabalho apresentado em evento | artigo de evento | paper in proceedings | proceedingspaper | proceedings article |
  aufsatz in konferenzband | konferenzpaper | conferencearticle | workshop paper | conference full paper |
  conference contribution (paper) | paper-conference | article in proceedings | 会議発表論文 |
  contribution in conference proceedings | beitrag in konferenzband | contributo in atti di convegno | papers |
  conference publication | actes de congrès | documento de congreso | comunicación de congreso | 会议论文 |
  conference or workshop item - paper | konferenzartikel | conference paper in proceedings | trabajo de evento |
  kongress
c_6670 conference poster: conference poster | poster | conferenceposter | conference or workshop item - poster |
  poster presentation | cartel
R60J-J5BD conference presentation: conference presentation | presentation | slideshow | präsentation | presentación |
  apresentação | conferencepresentation | powerpoint | conference or workshop item - presentation | slide set | speech |
  talk | vortrag | vortragsfolien | oral presentation | conference slides | presentazione | slide
c_8544 lecture: lecture | vorlesung | conferencia | keynote | inaugural lecture | antrittsvorlesung | cours |
  lecture notes | lecturenote
c_0857 letter: letter | brief | carta | lettre | lettera | correspondance | personal correspondence
c_0040 manuscript: manuscript | handschrift | manuscrit | manuscrito | manoscritto | handwritten |
  archival material/manuscript | archival material | autograph
c_18cw musical notation: musical notation | notated music | score | sheet music | noten | partitura | partition |
  musical score | notenblatt | printed music
c_816b preprint: preprint | pre-print | e-print | eprint | pré-publication, document de travail | pre print |
  author's original | submitted manuscript | postedcontent | posted content | vorabdruck | pré-publication |
  preimpresión
c_93fc report: consultancy report | report | bericht | informe | rapport | relatório | rapporto | raport |
  monograph/report | contribution to report | report component | отчет | rapporter | reporte | relazione | book/report
c_7877 clinical study: clinical study
c_ab20 data management plan: data management plan | outputmanagementplan | output management plan | dmp |
  datenmanagementplan
c_18ww internal report: internal report | internal note | interner bericht | informe interno | internal document
c_18wz memorandum: memorandum | memo
c_18wq other type of report: other type of report | external research report |
  info:eu-repo/semantics/externalresearchreport
c_186u policy report: policy briefing report | policy report | policy brief | policy paper | white paper | whitepaper |
  briefing paper | position paper
c_18op project deliverable: project deliverable | deliverable | projectdeliverable | project report |
  project documentation | project milestone | projectmilestone
YZ1N-ZFT9 research protocol: research protocol | studyregistration | study registration | protocol | study protocol |
  studienprotokoll | preregistration | registered report
c_18ws research report: research report | forschungsbericht | informe de investigación | scientific report |
  relatório de pesquisa | rapport de recherche | researchreport | forskningsrapport | final report | abschlussbericht |
  report to funding agency
c_18gh technical report: technical report | techreport | technicalreport | technischer bericht | informe técnico |
  relatório técnico | rapport technique | tech report | report - technical | tech-report | technical note | nota técnica
c_baaf research proposal: research proposal | projektantrag | grant proposal | grant application | award | proposal |
  project proposal
c_71bd technical documentation: manual/guide | technical standard | technical documentation | manual | user guide |
  handbuch | documentation | technicaldocumentation | user manual | standard | specification | guideline | guide |
  guía | tutorial manual | datasheet
c_46ec thesis: thesis | dissertation | theses | thesis or dissertation | electronic thesis or dissertation | etd |
  hochschulschrift | tese ou dissertação | thèse/mémoire | scriptie | tesi | thesis/dissertation | abschlussarbeit |
  studentthesis | student thesis | text.thesis | diplomityö | trabajo de grado | tez | oppgave | student work |
  dissertations/theses | electronic thesis and dissertation | 学位論文 | 学位论文 | 학위논문 | academic thesis |
  hochschulschriften | диссертация | дисертація
c_7a1f bachelor thesis: skripsi | bakalářská práce | bakalárska práca |
  bachelor thesis | bachelorthesis | bachelor's thesis | bachelors thesis | bachelorarbeit |
  trabajo final de grado | trabalho de conclusão de curso | trabajo fin de grado | tesis de licenciatura |
  tesis de pregrado | trabajo de fin de grado | undergraduate thesis | honors thesis | kandidatuppsats | tcc | tesina |
  bacheloroppgave | tesi di laurea | trabajo de grado - pregrado | thesis (bachelor) | undergraduate dissertation |
  licentiate thesis (bachelor) | honours thesis | trabalho de conclusão de graduação | senior thesis | bachelor |
  kandidaatintyö | bachelor's
c_bdcc master thesis: diplomová práce | diplomová práca | 修士論文 |
  master thesis | masterthesis | master's thesis | masters thesis | masterarbeit | dissertação |
  dissertação de mestrado | tesis de maestría | mémoire de master | mémoire de maîtrise | trabajo fin de máster |
  diplomarbeit | diploma thesis | magisterarbeit | trabajo de fin de máster | masteroppgave | tesis de máster |
  thesis (masters) | thesis (master) | mestrado | thesis (m.s.) | m.sc. thesis | msc thesis | tesi magistrale |
  mémoire | masteruppsats | masterscriptie | trabajo de grado - maestría | master | yüksek lisans tezi | pro gradu |
  master's | thesis (mphil) | dumas | master of science | master dissertation | master's dissertation | mphil |
  pracamagisterska | praca magisterska
c_db06 doctoral thesis: disertasi | disertační práce | dizertačná práca | praca doktorska |
  doctoral thesis | doctoralthesis | phd thesis | ph.d. thesis | doctoral dissertation |
  doktorarbeit | dissertation (phd) | tese | tesis doctoral | tese de doutorado | thèse | thèse de doctorat |
  thesis (doctoral) | inauguraldissertation | phd | thesis.doctoral | doktorsavhandling | doktoravhandling |
  proefschrift | tesi di dottorato | doutorado | väitöskirja | habilitation | habilitationsschrift | thesis (phd) |
  thesis (ph.d.) | phdthesis | doctoral | tesis de doctorado | tese de doutoramento | trabajo de grado - doctorado |
  doktora tezi | rozprawa doktorska | 博士论文 | 博士論文 | phd dissertation | doctoral theses | doctorate thesis |
  hdr | thesis (doctorate) | doctor of philosophy | ph.d. dissertation | doktorgradsavhandling
6NC7-GK9S transcription: transcription | transcript | transkription | interview | oral history | oral history interview
c_8042 working paper: working paper | workingpaper | discussion paper | arbeitspapier | documento de trabajo |
  working/discussion paper | document de travail | diskussionspapier | occasional paper | documento de trabalho |
  working or discussion paper | research working paper | working paper / technical report
c_15cd patent: patent | patente | brevet | brevetto | patentschrift
c_ddb1 dataset: dataset | data set | data | research data | datensatz | forschungsdaten | conjunto de datos |
  conjunto de dados | jeu de données | dataset/time series | dataset/publication series | database | datenbank |
  nongeographicdataset | série de données | numeric data | data collection | observational data | experimental data |
  survey data | spreadsheet | research dataset | raw data | données de recherche | insieme di dati | gegevens |
  データセット | 数据集 | tabular data | dati | datos | base de datos | measurement | supplementary dataset |
  computer dataset | feature | tile
c_cb28 clinical trial: clinical trial | clinicaltrial | clinical trial data
c_c513 image: image | bild | imagen | imagem | immagine | afbeelding | figure | graphic | abbildung | visualization |
  画像 | illustration | drawing | two-dimensional nonprojectable graphic | kit
c_ecc8 still image: still image | stillimage | photograph | photo | foto | fotografía | fotografie | photographie |
  picture | plot | diagram | postcard | painting | poster image | slide (photograph)
c_8a7e moving image: moving image | movingimage | film | animation | projected medium | audiovisual | film/video |
  audio-visual | audiovisual material | películas
c_12ce video: video | recorded video | video recording | videorecording | tv broadcast | video/audio
c_18cc sound: sound | audio | sound recording | recording, acoustical | ton | sonido | tonaufnahme |
  sound recording-nonmusical | audio recording | podcast | recording | grabación sonora | enregistrement sonore |
  recording, oral | aufnahme
c_18cd musical composition: musical composition | composition | music | sound recording-musical | musik | música |
  musique | recording, musical | musical work
c_12cc cartographic material: cartographic material | cartographic | kartographisches material | cartographic resource |
  atlas | globe
c_12cd map: map | karte | mapa | carte (map) | mappa | landkarte | kaart | carte géographique | 地図 | geographic map |
  sheet map
c_5ce6 software: software | computer program | computerprogram | computer software | source code | code | programme |
  program | script | software, multimedia | software/code | computational notebook | computationalnotebook | logiciel |
  programa de ordenador | softwareapplication | softwaresourcecode | ソフトウェア | model code | library (software) |
  computer file | software application
c_393c workflow: workflow | arbeitsablauf | computational workflow
c_7ad9 website: website | web page | webpage | web site | web resource | internet publication | webseite | site web |
  página web | online resource | internetpublikation | webdocument | web | homepage | electronic resource (website)
c_e9a0 interactive resource: interactive resource | interactiveresource | interactive | game | virtual reality |
  application (interactive) | videogame
c_e059 learning object: learning object | learningobject | teaching material | teaching resource | lehrmaterial |
  course material | coursework | oer | objeto de aprendizagem | material didáctico | material didático |
  learning material | educational resource | lesson | exam | lesson plan | learning resource |
  open educational resource | course | lehr-/lernmaterial | curriculum | syllabus | objeto de aprendizaje |
  educational material | teaching objects | question paper | examination paper | case study | tutorial
c_18cf text: text | texto | texte | testo | tekst | textual | text resource | language material | written | document |
  dokument | documento | literature | text/html | print | publication | electronic text | contribution |
  literaturepublication | schriftgut | textdokument
c_1843 other: other | andere | otro | outro | autre | altro | miscellaneous | misc | andet | annet | inne | overig |
  varia | n/a | non-article | other contribution | mixed material | collection | physicalobject | physical object |
  service | model | instrument | series | artwork | artifact | exhibition | performance | three dimensional object |
  realia | ausstellung | design | object | objekt | audiovisual (other) | unknown | interactive text | creative work |
  show/exhibition | artefact | other publication | sonstige | その他 | 其他 | 기타
QX5C-AR31 other periodical:
c_18cp conference paper not in proceedings:
c_18co conference poster not in proceedings:
"""
"""The types: the last part of the URI, the label, and words. `_code_of` finds plurals and prefixes by itself."""


def _read(table: str) -> Iterator[tuple[str, str, list[str]]]:
    """The types of the table with their words. A line that is not indented begins a type."""
    for entry in re.split(r"\n(?=\S)", table.strip()):
        named, _, words = entry.partition(":")
        code, label = named.split(" ", 1)
        yield code, label, [form for word in words.split("|") if (form := folded(word))]


_TYPES = tuple(_read(_TABLE))
LABELS = {code: label for code, label, _ in _TYPES}
"""The types, by the last part of their URIs."""

_BY_WORD = {word: code for code, _, words in _TYPES for word in words}
_CODES = {
    **{code.lower(): code for code in LABELS},
    # Types of earlier versions of the vocabulary.
    "c_3e5a": "c_6501",
    "c_8185": "c_18co",
    "c_18hj": "c_18ws",
    "c_ba1f": "c_93fc",
    "c_18gg": "c_18gh",
    "c_26e4": "c_e9a0",
    "c_2659": "QX5C-AR31",
}

_COAR = re.compile(r"(?:.{0,80}resource_type/)?(c_[0-9a-z]{4,8}|[0-9a-z]{4}-[0-9a-z]{4})/?", re.IGNORECASE)
_PREFIX = re.compile(
    r"(?:info:(?:eu-repo|ulb-repo|pe-repo|ar-repo|kr-repo)/semantics/|info:eu-repo/type/|https?://purl\.org/dc/dcmitype/|dcmitype:|"
    r"dctypes:|https?://schema\.org/|https?://purl\.org/(?:spar/fabio|eprint/type|ontology/bibo)/|doc-type:|type:|driver:|"
    r"https?://purl\.org/info:eu-repo/semantics/|https?://purl\.org/redcol/resource_type/|"
    r"https?://datacite-metadata-schema\.readthedocs\.io/.{0,100}#|text\.|dini:|status-type:)",
    re.IGNORECASE,
)
_REDCOL = {
    "art": "c_6501",
    "artrev": "c_dcae04bc",
    "lib": "c_2f33",
    "cap_lib": "c_3248",
    "td": "c_db06",
    "tm": "c_bdcc",
    "tp": "c_7a1f",
    "wp": "c_8042",
    "dat": "c_ddb1",
}
_NOT_A_TYPE = re.compile(
    r".{0,60}(?:publishedversion|acceptedversion|submittedversion|updatedversion|draft)|"
    r"(?:not )?peer[\s-]?reviewed|nonpeerreviewed|"
    r"(?:non[\s-])?peerreviewed|not reviewed|refereed|versión publicada|accepted manuscript|postprint|"
    r"author accepted manuscript|published",
    re.IGNORECASE,
)
_DEGREES = (
    ("c_db06", re.compile(r"ph\.?\s?d|d\.?\s?phil|d\.?\s?sc|ed\.?\s?d|doctor\w{0,4}", re.IGNORECASE)),
    (
        "c_bdcc",
        re.compile(r"m\.?\s?(?:a|s|sc|phil|ed|eng|arch|b\.?a|res|f\.?a|p\.?h)|ll\.?\s?m|masters?", re.IGNORECASE),
    ),
    ("c_7a1f", re.compile(r"b\.?\s?(?:a|s|sc|ed|eng|arch)|bachelors?", re.IGNORECASE)),
)
_THESIS = re.compile(
    r"(?:thesis|dissertation)\s?\(([^()]{1,40}?)\.?(?:\s(?:in|of)\s[^()]{1,60}|,[^()]{1,60}|--[^()]{1,60})?\)",
    re.IGNORECASE,
)
"""A thesis with its degree, as catalogues of libraries write it: `Thesis (M.A., History)`."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PARENTHESIS = re.compile(r"\s?\([^()]{0,60}\)")
_PARTS = re.compile(r"\s?(?:[;/|>»:]|,\s|--|\s-\s)\s?")


@lru_cache(5_000)
def type_of(text: str) -> tuple[str, str] | None:
    """The last part of the URI, and the label, of the type of COAR that a text names; None if it names none.

    A text with several parts, such as `Thesis - PhD`, has the type of its last part that names one, except what names
    a kind of text in general.
    """
    text = " ".join(text[:300].split()).strip(" .")
    code = _code_of(text)
    if code is None and not _NOT_A_TYPE.fullmatch(text):
        found = [each for part in _PARTS.split(text) if (each := _code_of(part.strip())) is not None]
        code = next((each for each in reversed(found) if each not in ("c_1843", "c_18cf")), found[0] if found else None)
    return (code, LABELS[code]) if code is not None else None


def _code_of(text: str) -> str | None:
    if not text or _NOT_A_TYPE.fullmatch(text):
        return None
    if found := _COAR.fullmatch(text):
        return _CODES.get(found[1].lower())
    if thesis := _THESIS.match(text):
        degree = thesis[1].strip()
        if code := next((code for code, pattern in _DEGREES if pattern.fullmatch(degree)), None):
            return code
    plain = _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
    if "redcol" in text:
        return _REDCOL.get(plain.lower())
    for form in (
        plain,
        text,
        _CAMEL.sub(" ", plain),
        _PARENTHESIS.sub("", plain),
        plain.replace("_", " ").replace("-", " "),
    ):
        word = folded(form)
        if code := _BY_WORD.get(word):
            return code
        if word.endswith("s") and (code := _BY_WORD.get(word[:-1])):
            return code
    return None
