"""Names: parts, kind and identifiers, in the forms that records have."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaharvest.model.outputs import Agent, AgentKind
from metaharvest.pipeline.cleaning.names import Parts, agent, agents, parts_of


def one(text: str) -> Agent:
    (found,) = agents(text, "dc:creator[1]")
    return found


@pytest.mark.parametrize(
    ("name", "family", "given_name"),
    [
        ("Smith, John", "Smith", "John"),
        ("Álvar Núñez Cabeza de Vaca", "Núñez Cabeza de Vaca", "Álvar"),
        ("José Luis García de Paredes", "García de Paredes", "José Luis"),
        ("María José de la Cruz", "de la Cruz", "María José"),
        ("Prof. Dr. h.c. mult. Hans Meier", "Meier", "Hans"),
        ("Meier, Hans, Prof. Dr.", "Meier", "Hans"),
        ("Ruffman, Mag", "Ruffman", "Mag"),
        ("John Smith", "Smith", "John"),
        ("J. R. R. Tolkien", "Tolkien", "J. R. R."),
        ("Tolkien, J.R.R.", "Tolkien", "J.R.R."),
        ("Ludwig van Beethoven", "van Beethoven", "Ludwig"),
        ("van der Berg, Jan", "van der Berg", "Jan"),
        ("Berg, Jan van der", "van der Berg", "Jan"),
        ("de la Cruz, María", "de la Cruz", "María"),
        ("María de la Cruz", "de la Cruz", "María"),
        ("Gabriel García Márquez", "García Márquez", "Gabriel"),
        ("García Márquez, Gabriel", "García Márquez", "Gabriel"),
        ("Ivanov, V", "Ivanov", "V"),
        ("Petrov, VI", "Petrov", "VI"),
        ("Silva e Souza, V", "Silva e Souza", "V"),
        ("St. John, VI", "St. John", "VI"),
        ("Smith, John, Jr.", "Smith", "John Jr."),
        ("Smith Jr., John", "Smith", "John Jr."),
        ("John Smith Jr.", "Smith", "John Jr."),
        ("John Smith III", "Smith", "John III"),
        ("Smith, John III", "Smith", "John III"),
        ("SMITH, JOHN", "Smith", "John"),
        ("SMITH John", "Smith", "John"),
        ("John SMITH", "Smith", "John"),
        ("O'BRIEN, PAT", "O'Brien", "Pat"),
        ("MCDONALD, RONALD", "McDonald", "Ronald"),
        ("VAN DER BERG, JAN", "van der Berg", "Jan"),
        ("Smith J", "Smith", "J"),
        ("Smith JA", "Smith", "JA"),
        ("van der Berg JA", "van der Berg", "JA"),
        ("Smith J.A.", "Smith", "J.A."),
        ("J.A. Smith", "Smith", "J.A."),
        ("山田太郎", "山田", "太郎"),
        ("王小明", "王", "小明"),
        ("김철수", "김", "철수"),
        ("欧阳修", "欧阳", "修"),
        ("佐々木小次郎", "佐々木", "小次郎"),
        ("山田, 太郎", "山田", "太郎"),
        ("佐藤 花子", "佐藤", "花子"),
        ("佐藤はなこ", "佐藤", "はなこ"),
        ("Kovács, János", "Kovács", "János"),
        ("Smith, John (0000-0002-1825-0097)", "Smith", "John"),
        ("Smith, John https://orcid.org/0000-0002-1825-0097", "Smith", "John"),
        ("Dr. John Smith", "Smith", "John"),
        ("John Smith, PhD", "Smith", "John"),
        ("Smith, John, 1950-2001", "Smith", "John"),
        ("Smith, John, 1950-", "Smith", "John"),
        ("Smith, John (ed.)", "Smith", "John"),
        ("Smith, J. et al.", "Smith", "J."),
        ("Church, George M.", "Church", "George M."),
        ("Press, William H.", "Press", "William H."),
        ("José Ortega y Gasset", "Ortega y Gasset", "José"),
        ("Eddy Van Hoof", "Van Hoof", "Eddy"),
        ("Oscar De La Hoya", "De La Hoya", "Oscar"),
        ("Wang Xiaoming", "Wang", "Xiaoming"),
        ("WANG Xiaoming", "Wang", "Xiaoming"),
        ("Xiaoming Wang", "Wang", "Xiaoming"),
        ("Kim Min-jun", "Kim", "Min-jun"),
        ("Min-jun Kim", "Kim", "Min-jun"),
        ("Nguyen Van An", "Nguyen", "Van An"),
        ("Nguyễn Văn An", "Nguyễn", "Văn An"),
        ("Jean-Pierre Dupont", "Dupont", "Jean-Pierre"),
        ("DUPONT Jean-Pierre", "Dupont", "Jean-Pierre"),
        ("Dupont, J.-P.", "Dupont", "J.-P."),
        ("Müller-Lüdenscheidt, Hans", "Müller-Lüdenscheidt", "Hans"),
        ("al-Farsi, Ahmed", "al-Farsi", "Ahmed"),
        ("Ahmed al-Farsi", "al-Farsi", "Ahmed"),
        ("Muhammad ibn Musa", "ibn Musa", "Muhammad"),
        ("St. John, Mary", "St. John", "Mary"),
        ("Mary Ann Smith", "Smith", "Mary Ann"),
        ("D'Angelo, Maria", "D'Angelo", "Maria"),
        ("da Silva, João", "da Silva", "João"),
        ("Silva Filho, João", "Silva Filho", "João"),
        ("Lee, S.-H.", "Lee", "S.-H."),
        ("Li, X", "Li", "X"),
        ("X. Li", "Li", "X."),
        ("LI, XIAOMING", "Li", "Xiaoming"),
        ("LI X", "Li", "X"),
        ("Иванов, Иван Иванович", "Иванов", "Иван Иванович"),
        ("Иванов И. И.", "Иванов", "И. И."),
        ("И. И. Иванов", "Иванов", "И. И."),
        ("Παπαδόπουλος, Γιώργος", "Παπαδόπουλος", "Γιώργος"),
        ("H. C. van de Hulst", "van de Hulst", "H. C."),
        ("Guido van Rossum", "van Rossum", "Guido"),
        ("De Groot, H.", "De Groot", "H."),
        ("von Humboldt, Alexander", "von Humboldt", "Alexander"),
        ("Humboldt, Alexander von", "von Humboldt", "Alexander"),
        ("Smith, J.A.B", "Smith", "J.A.B"),
        ("Smith , John", "Smith", "John"),
        ("John Q. Public", "Public", "John Q."),
        ("Martin Luther King, Jr.", "King", "Martin Luther Jr."),
        ("Sammy Davis Jr", "Davis", "Sammy Jr."),
        ("Prof. Dr. Hans Müller", "Müller", "Hans"),
        ("Smith, Dr John", "Smith", "John"),
        ("Smith, J.; 0000-0002-1825-0097", "Smith", "J."),
        ("John Smith1,2", "Smith", "John"),
        ("John Smith*", "Smith", "John"),
        ("Smith, John <j.smith@example.org>", "Smith", "John"),
        ("Jönsson, P. A. (Per Anders)", "Jönsson", "P. A."),
        ("Smith, John (University of X)", "Smith", "John"),
        ("Ch. Darwin", "Darwin", "Ch."),
        ("Ian McEwan", "McEwan", "Ian"),
        ("Y. Zhang", "Zhang", "Y."),
        ("Zhang Y.", "Zhang", "Y."),
        ("Zhang, Y.-P.", "Zhang", "Y.-P."),
        ("Hernandez Perez J", "Hernandez Perez", "J"),
        ("LOPEZ GARCIA, MARIA JOSE", "Lopez Garcia", "Maria Jose"),
        ("Dos Santos, A.", "Dos Santos", "A."),
        ("Petrova, E.V", "Petrova", "E.V"),
    ],
)
def test_a_person(name: str, family: str, given_name: str) -> None:
    found = one(name)
    assert (found.kind, found.family, found.given) == (AgentKind.PERSON, family, given_name)


@pytest.mark.parametrize(
    "name",
    [
        "University of California, Berkeley",
        "US EPA",
        "GBIF.org User",
        "University of X",
        "ATLAS Collaboration",
        "The ATLAS Collaboration",
        "The Cancer Genome Atlas Research Network",
        "Friends of the Earth",
        "Max Planck Institute for Chemistry",
        "U.S. Geological Survey",
        "Institute of Physics, Chinese Academy of Sciences",
        "Alfred Wegener Institute",
        "LIGO Scientific Collaboration and Virgo Collaboration",
        "Bill & Melinda Gates Foundation",
        "東京大学",
        "北京大学物理学院",
        "Department of Biology",
        "Wikipedia contributors",
        "Smith & Sons Ltd.",
        "Alder, Inc.",
        "Elsevier B.V.",
        "World Health Organization",
        "European Space Agency (ESA)",
        "Genome Aggregation Database Consortium",
        "Students of Biology 101",
        "USDA Forest Service",
        "Bundesamt für Naturschutz",
        "Universität Wien",
        "Institut für Meereskunde",
        "Centre National de la Recherche Scientifique",
        "Comisión Nacional para el Conocimiento y Uso de la Biodiversidad",
        "Ministerio de Salud",
    ],
)
def test_an_organisation(name: str) -> None:
    found = one(name)
    assert (found.kind, found.family, found.given) == (AgentKind.ORGANISATION, None, None)


@pytest.mark.parametrize(
    "name",
    [
        "NASA",
        "Núñez Cabeza de Vaca",
        "Plato",
        "World Bank",
        "Anonymous",
        "CERN",
        "Springer",
        "Harvard Forest",
        "IPCC",
        "Data Manager",
        "unknown",
        "CNRS",
    ],
)
def test_a_doubtful_name_stays_as_it_was_given(name: str) -> None:
    assert one(name) == Agent(name, "dc:creator[1]", AgentKind.UNKNOWN)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("शर्मा, अनिल", (AgentKind.PERSON, "शर्मा", "अनिल")),
        ("Ramírez, Carlos.", (AgentKind.PERSON, "Ramírez", "Carlos")),
        ("Петрова Е", (AgentKind.PERSON, "Петрова", "Е")),
        ("VŨ Hoa", (AgentKind.PERSON, "Vũ", "Hoa")),
        ("Frogsoft s.r.o.", (AgentKind.ORGANISATION, None, None)),
        ("Larsson AB", (AgentKind.PERSON, "Larsson", "AB")),
        ("Alder, Ann - University of Westmark", (AgentKind.PERSON, "Alder", "Ann")),
        ("Alder, Ann, University of Westmark", (AgentKind.UNKNOWN, None, None)),
        ("Westmark University, Faculty of Science, Oregon", (AgentKind.ORGANISATION, None, None)),
        ("Alder, Birch and Cedar", (AgentKind.UNKNOWN, None, None)),
        ("Ann Alder and Bo Birch", (AgentKind.UNKNOWN, None, None)),
        ("Food Standards Australia New Zealand", (AgentKind.ORGANISATION, None, None)),
    ],
)
def test_names_that_other_data_showed(name: str, parts: tuple[AgentKind, str | None, str | None]) -> None:
    assert parts_of(name) == parts


def test_two_family_names_without_a_comma_are_a_person_in_either_order() -> None:
    assert parts_of("Li Wei") == (AgentKind.PERSON, None, None)
    assert parts_of("Li, Wei") == (AgentKind.PERSON, "Li", "Wei")


def test_the_name_is_as_given_without_identifiers_and_notes() -> None:
    text = "Alder,  Ann (0000-0002-1825-0097)"
    assert one(text) == Agent("Alder, Ann", "dc:creator[1]", AgentKind.PERSON, "Alder", "Ann", "0000-0002-1825-0097")
    assert one("Alder, Ann <ann@alder.example.org>").name == "Alder, Ann"
    assert one("Alder, Ann [editor]").name == "Alder, Ann"
    assert one("ALDER, ANN").name == "ALDER, ANN"
    assert one("Alder, Ann, 1950-2001").name == "Alder, Ann, 1950-2001"


def test_a_wrong_check_digit_is_no_orcid() -> None:
    assert one("Alder, Ann (0000-0002-1825-0098)").orcid is None


def test_identifiers_beside_a_name_say_its_kind() -> None:
    (person,) = agent("Plato", "s", identifiers=["https://orcid.org/0000-0002-1825-0097"])
    assert (person.kind, person.orcid) == (AgentKind.PERSON, "0000-0002-1825-0097")
    (organisation,) = agent("Alder Creek Inc", "s", identifiers=["https://ror.org/02twcfp32"])
    assert (organisation.kind, organisation.ror) == (AgentKind.ORGANISATION, "02twcfp32")


def test_a_document_says_the_kind_and_the_parts() -> None:
    (organisation,) = agent("Alder, Ann", "s", said=Parts(AgentKind.ORGANISATION))
    assert (organisation.kind, organisation.family) == (AgentKind.ORGANISATION, None)
    (person,) = agent("Ann Alder Birch", "s", said=Parts(AgentKind.PERSON, "Alder Birch", "Ann"))
    assert (person.family, person.given) == ("Alder Birch", "Ann")
    (single,) = agent("Plato", "s", said=Parts(AgentKind.PERSON, "Plato"))
    assert (single.kind, single.family, single.given) == (AgentKind.PERSON, "Plato", None)
    name = "Alder Creek Research Station"
    (station,) = agent(name, "s", said=Parts(AgentKind.PERSON, name))
    assert station.kind is AgentKind.ORGANISATION


def test_a_list_of_names_has_semicolons() -> None:
    assert [each.family for each in agents("Alder, Ann; Birch, Bo", "s")] == ["Alder", "Birch"]
    assert [each.name for each in agents("Alder, Ann; University of Alder", "s")] == [
        "Alder, Ann",
        "University of Alder",
    ]
    assert [each.name for each in agents("Department of Biology; Frogs", "s")] == ["Department of Biology; Frogs"]
    (found,) = agents("Alder, Ann; 0000-0002-1825-0097", "s")
    assert (found.name, found.orcid) == ("Alder, Ann", "0000-0002-1825-0097")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Smith, J. and Doe, A.", ["Smith, J.", "Doe, A."]),
        ("Smith, John, and Doe, Anna", ["Smith, John", "Doe, Anna"]),
        ("Smith, J., Doe, A. & Roe, B. C.", ["Smith, J.", "Doe, A.", "Roe, B. C."]),
        ("van der Berg, Jan and Smith, Ann and Doe, Bo", ["van der Berg, Jan", "Smith, Ann", "Doe, Bo"]),
        ("SMITH, J. AND DOE, A.", ["SMITH, J.", "DOE, A."]),
        ("García, J. y López, A.", ["García, J.", "López, A."]),
        ("Smith, J.; Doe, A. and Roe, B.", ["Smith, J.", "Doe, A.", "Roe, B."]),
        ("Smith, J., Doe, A.", ["Smith, J.", "Doe, A."]),
        ("Smith J, Doe AB, van der Berg C", ["Smith J", "Doe AB", "van der Berg C"]),
        ("Smith J., Doe A.B. and Roe C.", ["Smith J.", "Doe A.B.", "Roe C."]),
        ("Smith J (ed.), Doe A", ["Smith J", "Doe A"]),
        ("J. Smith, A. B. Doe, and C. van der Berg", ["J. Smith", "A. B. Doe", "C. van der Berg"]),
        ("J. Smith & A. Doe", ["J. Smith", "A. Doe"]),
        ("Петров П.П., Сидоров С.С.", ["Петров П.П.", "Сидоров С.С."]),
    ],
)
def test_a_list_of_persons_is_split(text: str, names: Sequence[str]) -> None:
    found = list(agents(text, "s"))
    assert [each.name for each in found] == names
    assert {each.kind for each in found} == {AgentKind.PERSON}


@pytest.mark.parametrize(
    "text",
    [
        "Smith, J. and Sons",
        "Smith, Jones and Brown",
        "Smith, Jones and Brown, Inc.",
        "Smith, Jones, Brown and White",
        "Smith, J., Jr. and Doe, A.",
        "Smith, J. and University of Alder",
        "Smith, J. and University of Alder, Westmark",
        "Institute of Physics, Berlin and Institute of Chemistry, Bonn",
        "Department of Fish and Game, Oregon",
        "Ortega y Gasset, José",
        "Ministry of Food, Land and Water, Oregon",
        "Energy, Mines and Resources, Yukon",
        "Montana Fish, Wildlife and Parks, Helena",
        "Smith, Jones & Co., LLP",
        "King Jr., Martin L.",
        "Smith J., PhD",
        "A. Smith & Sons",
        "John Smith and Kim Doe",
        "J. Smith, Ph. D.",
        "J. Smith, M. A.",
        "J. Smith, B. Sc.",
        "J. Smith, S. J.",
        "E. Merck, N. V.",
        "J. Smith, St. Louis",
        "И. Иванов, г. Москва",
    ],
)
def test_other_texts_with_and_are_one_agent(text: str) -> None:
    assert one(text).name == text


@pytest.mark.parametrize(
    "text",
    [
        "Energy, Mines, and Resources, Yukon",
        "Montana Fish, Wildlife, and Parks, Helena",
        "Fish, Wildlife, and Parks, Montana",
        "Tourism, Arts, and Culture, British Columbia",
        "Agriculture, Fisheries & Conservation, Hong Kong",
    ],
)
def test_an_office_with_commas_is_an_organisation(text: str) -> None:
    found = one(text)
    assert (found.name, found.kind) == (text, AgentKind.ORGANISATION)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Parks, Rosa, and King, Martin", ["Parks, Rosa", "King, Martin"]),
        ("Fish, H., and Parks, R.", ["Fish, H.", "Parks, R."]),
        ("Fish, Mary, and Parks, John", ["Fish, Mary", "Parks, John"]),
        ("Waters, Forest", ["Waters, Forest"]),
        ("Smith, J., and Jones, K.", ["Smith, J.", "Jones, K."]),
    ],
)
def test_persons_may_have_the_name_of_an_office(text: str, names: Sequence[str]) -> None:
    assert [each.name for each in agents(text, "s")] == names


def test_a_name_with_an_identifier_is_one_agent() -> None:
    (found,) = agents("Smith, J. and Doe, A.", "s", identifiers=["https://orcid.org/0000-0002-1825-0097"])
    assert (found.name, found.orcid) == ("Smith, J. and Doe, A.", "0000-0002-1825-0097")


def test_what_has_no_letters_is_no_agent() -> None:
    assert list(agents("", "s")) == []
    assert list(agents(" - ", "s")) == []
    assert list(agents("1234", "s")) == []


@settings(max_examples=200)
@given(st.text(max_size=80) | st.text(alphabet="AaBe .,-;()JrvandeI\u5c71王김", max_size=40))
def test_any_text_gives_agents_with_names(text: str) -> None:
    for each in agents(text, "s"):
        assert each.name == each.name.strip()
        assert any(map(str.isalpha, each.name))
        assert each.kind is AgentKind.PERSON or (each.family is None and each.given is None)
        assert each.family != ""
        assert each.given != ""
