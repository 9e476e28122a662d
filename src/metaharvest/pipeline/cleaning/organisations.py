"""Names of organisations, by the words that only they have, in some twenty languages. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from metaharvest.pipeline.letters import word_set

_STRONG = word_set("""
    university universität universitaet universidad université universita università universidade universiteit
    universitet universitetet universitat uniwersytet univerzita univerzitet sveučilište egyetem üniversitesi
    yliopisto ülikool univ université' politecnico polytechnic polytechnique politécnica politechnika technische
    hochschule fachhochschule institute institut instituto istituto instituut institutt instytut institution
    institutet institutes institutions department dept departamento département dipartimento abteilung afdeling
    división division faculty facultad fakultät faculté faculdade facoltà centre centro zentrum centrum centrul
    senter laboratory laboratories laboratorio laboratoire laboratório lab labs museum museo musée muzeum museu
    library bibliothek biblioteca bibliothèque bibliotheek archives archivo archiv ministry ministerio ministère
    ministerium ministério ministero ministerstvo ministerie agency agencia agence agentur agência agenzia
    association asociación associação associazione verein vereinigung society sociedad société gesellschaft
    sociedade società consejo conselho conseil committee comité komitee comissão commission comisión kommission
    commissione comitê consortium konsortium consorcio consórcio collaboration collaborative kollaboration
    colaboración grupo gruppe groupe gruppo network netzwerk project projekt proyecto projet projeto progetto
    programme programa foundation fundación stiftung fondation fundação fondazione academy akademie academia
    académie akademia hospital klinik klinikum hôpital ospedale clinic clínica survey servicio oficina ltd limited
    gmbh llc corp corporation plc verlag publishing publishers editora éditions edizioni observatory observatorio
    observatoire observatório authority autoridad board organization organisation organización organização
    organizzazione unión union: federation federación föderation fédération government gobierno governo gouvernement
    governorate administration administración secretariat secretaría sekretariat trust trusts alliance initiative
    partnership coalition congress parliament senate court conference workshop taskforce investigators contributors
    participants members consultants consulting systems technologies solutions software lter cooperative kooperative
    development directorate dirección directorate-general embassy army navy municipality ayuntamiento prefeitura
    district province provincia county commonwealth republic kingdom states nations european national nacional
    nationale international internacional federal staff unit unidad unité task program herbarium arboretum zoo
    aquarium preserve refuge watershed seminary colegio collège schule escola escuela école schools gymnasium
    studies sciences research forschung forschungszentrum recherche recherches investigación database databank
    repository biobank registry engineering technology technologie technological agricultural environmental
    meteorological geological hydrological oceanographic atmospheric ecological fisheries forestry statistics
    collaborators steering editors redaktion redaction redacción universities societies associations communities
    community onderzoek rijksuniversiteit kaiser-wilhelm-institut max-planck-institut forschungsinstitut bundesamt
    bundesanstalt landesamt bundesministerium umweltbundesamt universitätsklinikum universitätsbibliothek
    staatsbibliothek forschungsgruppe arbeitsgruppe arbeitsgemeinschaft arbeitskreis landesanstalt forschungsanstalt
    kommunikation institutul naukowy nauk akademii akademiya университет институт академия центр лаборатория
    министерство музей библиотека кафедра факультет общество организация groep gruppen grupa company compañía
    observatories stations delegation bureaux sector pty công office station group school fund bureau reserve works
    studio studios gallery theatre theater council archive forum center service services working direction editorial
    comune standards australia zealand canada
    deutschland españa america europe germany usa
""")
"""Words that names of persons do not have, in lower case."""

_WEAK = word_set("""
    bank press church farm college union state force garden gardens lodge labor general team branch global forest
    manager director coordinator curator curators editor archivist administrator contact owner secretary chief head
    officer specialist scientist technician river lake valley bay island islands mountain
""")
"""Words that are family or given names of persons as well: with one other word, they leave a doubt."""

_OFFICES = word_set("""
    affairs agriculture arts climate commerce conservation culture economy education employment energy environment
    finance fish fisheries food forest forestry forests game health heritage housing industry infrastructure innovation
    justice labor labour land lands mines mining oceans parks planning recreation resources safety science security
    sports sustainability technology tourism trade transport transportation water waters welfare wildlife works
""")
"""Words for the work of an office. Some are family names: two of them side by side name an office."""

_BETWEEN = re.compile(r",? and |,? & |,")

_LINKING = word_set("of for the für pour para per on in at aux sur dell' della delle degli")
"""Small words that stand in names of organisations, and in no name of a person. `and` stands between persons, too."""

_ASIAN = tuple(
    str.split("""
    大学 大學 学院 學院 研究所 研究院 研究室 研究会 学会 學會 委员会 委員会 委員會 协会 協会 協會 公司 会社
    財団 法人 機構 センター 病院 医院 醫院 图书馆 図書館 圖書館 博物馆 博物館 政府 中心 實驗室 实验室 学校 學校
    编辑部 編集部 出版社 新聞社 银行 銀行 集团 集團 航空 電視 企業 工業 石化 信息 科技 電子 대학교 연구소
    연구원 학회 협회 센터 병원 위원회 재단 공사 출판부 주식회사 유한회사 은행
""")
)
_ASIAN_BEGINNINGS = ("株式会社", "有限会社", "合同会社", "주식회사", "유한회사", "국립", "国立", "中国科学院", "中国")

_FORMS = word_set("""
    inc inc. incorporated ltd ltd. llc llp plc gmbh mbh kgaa ohg e.v. e.v corp corp. pty. s.p.a. srl s.r.l.
    s.r.l sarl s.a.r.l. s.a.s. s.n.c. b.v. n.v. bvba aps a/s oyj s.r.o. v.o.s. a.s. kft. kft zrt. zrt nyrt.
    nyrt bt. ltda ltda. lda lda. s.l.l. s.l.u. s.com. a.ş. şti. tbk d.o.o. sp.j. sp.k. o.o. a.e. α.ε. α.β.ε.ε.
    ооо оао зао пао ао еоод аеад адсиц инк лтд инкорпорэйтед publishers verlag
""")
"""Legal forms of companies that are no initials of a person."""

_NO_NAMES = _STRONG | _LINKING | {"inc", "incorporated", "corp"}
"""Words that are no given name. Other legal forms may be initials: Petrova, E.V"""

_WORDS = re.compile(r"[^\s,;()/\[\]]+")
_ACRONYM = re.compile(r"[A-Z]{2,}[-/&][A-Z]{2,}|[A-Z]{2,8}\d{1,4}")
_COMPOUND = re.compile(
    r"(?:institut|bundesamt|landesamt|universität|ministerium|gesellschaft|gemeinschaft|anstalt|verein|"
    r"stiftung|hochschule|zentrum|akademie|bibliothek|museum|forschung|konsortium).{0,2}$"
)
_STATES = frozenset(("US", "U.S.", "USA", "UK", "U.K.", "EU", "UN", "UAE", "NSW"))
_DOMAIN = re.compile(r"[\w-]{2,40}\.(?:com|edu|gov|int|net|org)", re.IGNORECASE)
_INITIAL = re.compile(r"(?:[^\W\d_]\.[\s-]?){1,4}|[A-Z]{1,3}")


def is_organisation(name: str) -> bool:
    """True for the name of an organisation, of any kind: a university, an office, a company, a working group."""
    lower = name.lower()
    if len(name) > 3 and (lower.endswith(_ASIAN) or name.startswith(_ASIAN_BEGINNINGS)):
        return True
    words = [each.strip(":'\"“”") for each in _WORDS.findall(lower)]
    if len(words) < 2:
        return bool(words) and (_is_compound(words[0]) or _ACRONYM.fullmatch(name) is not None)
    if has_words_of_office(name):
        return True
    if "," in name and (_is_person_with_comma(name) or _is_person_with_place(name)):
        return False
    plain = [each.strip(".") for each in words]
    if any(each in _STRONG for each in plain) or words[-1] in _FORMS or any(map(_is_compound, plain)):
        return True
    # US EPA; EU JIN LEE is a person.
    is_office = len(words) == 2 and name.isupper() and name.partition(" ")[0] in _STATES
    if is_office or any(map(_DOMAIN.fullmatch, words)):
        return True
    if len(words) > 2 and not _has_initials(name) and any(each in _WEAK for each in plain):
        return True
    if "," in name:
        return False
    return lower.startswith("the ") or (len(words) > 2 and any(each in _LINKING for each in plain[1:-1]))


def has_words_of_office(name: str) -> bool:
    """True for `Energy, Mines, and Resources, Yukon`: one office, though each half looks like a person's name.

    Two parts side by side are words of an office; family names are not side by side in `Fish, Mary, and Parks, John`.
    """
    parts = [each.strip(" .:'\"“”") in _OFFICES for each in _BETWEEN.split(name.lower())]
    return len(parts) > 2 and any(map(all, pairwise(parts)))


def _is_person_with_comma(name: str) -> bool:
    """True for `Church, George M.` or `Press, Ann`: one word, a comma, and what looks like a given name."""
    family, _, given = name.partition(",")
    others = [each.strip(".").lower() for each in given.split()]
    if len(family.split()) != 1 or not 1 <= len(others) <= 3 or "," in given:
        return False
    return family.lower() not in _STRONG and not any(each in _NO_NAMES for each in others)


def _is_person_with_place(name: str) -> bool:
    """True for `Alder, Ann, University of Westmark`: a word, another one, and an organisation behind them."""
    family, given, *others = (part.strip().lower() for part in name.split(","))
    words = [*family.split(), *given.split()]
    return (
        bool(others) and " " not in family and not any(each.strip(".") in _STRONG or each in _LINKING for each in words)
    )


def _is_compound(word: str) -> bool:
    """True for a compound of German and its like, such as Umweltbundesamt or Max-Planck-Institut."""
    return len(word) > 9 and _COMPOUND.search(word) is not None


def _has_initials(name: str) -> bool:
    return any(_INITIAL.fullmatch(each) and each not in _STATES for each in name.split())


def may_be_organisation(words: Sequence[str]) -> bool:
    """True for two words, one of which is rather of an office or a place than a name, as in `World Bank`."""
    if len(words) != 2 or any(_INITIAL.fullmatch(each) for each in words):
        return False
    return any(each.lower() in _STRONG or each.lower() in _WEAK for each in words)
