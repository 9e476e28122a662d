"""`metaharvest list build`: a harvest list of a folder, without a number to count up by hand."""

from __future__ import annotations

import codecs
import errno
import hashlib
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from lxml import etree

from metaharvest.rules import RULES
from support.cli import process_as_others
from support.harvester import eml
from support.lists import BASE, SiteFolder, changes, documents_of, problems, said

NAMESPACE = "eml://ecoinformatics.org/eml-2.1.1"

STRUCTURE = etree.XMLSchema(
    etree.XML(
        """
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="eml://ecoinformatics.org/harvestList">
  <xs:element name="harvestList"><xs:complexType><xs:sequence>
    <xs:element name="document" maxOccurs="unbounded"><xs:complexType><xs:sequence>
      <xs:element name="docid"><xs:complexType><xs:sequence>
        <xs:element name="scope" type="xs:string"/>
        <xs:element name="identifier" type="xs:long"/>
        <xs:element name="revision" type="xs:long"/>
      </xs:sequence></xs:complexType></xs:element>
      <xs:element name="documentType" type="xs:string"/>
      <xs:element name="documentURL" type="xs:anyURI"/>
    </xs:sequence></xs:complexType></xs:element>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""
    )
)
"""What harvesters have always asked of a list: everything inside of the root element is in no namespace."""


@pytest.fixture
def site(tmp_path: Path) -> SiteFolder:
    """Two documents, and no list yet."""
    folder = SiteFolder(tmp_path / "eml")
    folder.put("rain.xml", "alder.2.1")
    folder.put("discharge.xml", "alder.1.4")
    return folder


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# -- the list


def test_the_list_is_sorted_and_canonical_and_of_the_structure_that_all_harvesters_know(site: SiteFolder) -> None:
    site.put("tenth.xml", "alder.10.1")
    told = site.build()
    assert told.code == 0
    assert site.list_file.read_text(encoding="utf-8") == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<hrv:harvestList xmlns:hrv="eml://ecoinformatics.org/harvestList">\n'
        + "".join(
            "  <document>\n"
            "    <docid>\n"
            "      <scope>alder</scope>\n"
            f"      <identifier>{identifier}</identifier>\n"
            f"      <revision>{revision}</revision>\n"
            "    </docid>\n"
            f"    <documentType>{NAMESPACE}</documentType>\n"
            f"    <documentURL>{BASE}{name}</documentURL>\n"
            f'    <?metaharvest docid="alder.{identifier}.{revision}" sha256="{sha256(site.path / name)}"?>\n'
            "  </document>\n"
            for identifier, revision, name in ((1, 4, "discharge.xml"), (2, 1, "rain.xml"), (10, 1, "tenth.xml"))
        )
        + "</hrv:harvestList>\n"
    )
    assert STRUCTURE.validate(etree.parse(site.list_file)), STRUCTURE.error_log
    assert f"Wrote {site.list_file}: 3 documents (3 new)." in told.out
    assert f"check {BASE}harvest-list.xml" in told.out


def test_built_again_the_list_is_not_touched(site: SiteFolder) -> None:
    site.build()
    before = site.list_file.stat()
    told = site.build()
    assert (told.code, told.err) == (0, "")
    assert "stays as it is, nothing has changed: 2 documents (2 unchanged)." in told.out
    after = site.list_file.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_what_has_changed_gets_the_next_revision_and_the_others_keep_theirs(site: SiteFolder) -> None:
    site.build()
    site.put("rain.xml", "alder.2.1", "Another title")
    told = site.build()
    assert told.code == 0
    assert site.listed() == {"alder.1.4": "discharge.xml", "alder.2.2": "rain.xml"}
    assert re.search(r"^changed +alder\.2\.2 \(was 1\) +rain\.xml *$", told.out, re.MULTILINE)
    assert site.built()["written"] is False
    site.put("rain.xml", "alder.2.1", "A third title")
    assert changes(site.built()) == {"alder.1.4": "unchanged", "alder.2.3": "raised"}


def test_one_byte_is_a_change_even_if_xml_means_the_same(site: SiteFolder) -> None:
    site.build()
    rain = site.path / "rain.xml"
    rain.write_bytes(rain.read_bytes().replace(b"\n", b"\r\n"))
    assert changes(site.built())["alder.2.2"] == "raised"


def test_a_revision_raised_by_hand_in_the_package_id_holds(site: SiteFolder) -> None:
    site.build()
    site.put("rain.xml", "alder.2.7", "Another title")
    assert changes(site.built())["alder.2.7"] == "raised-by-hand"
    site.put("rain.xml", "alder.2.7", "A third title")
    assert changes(site.built())["alder.2.8"] == "raised"


def test_a_revision_raised_by_hand_in_the_list_holds(site: SiteFolder) -> None:
    site.build()
    text = site.list_file.read_text(encoding="utf-8")
    site.list_file.write_text(text.replace("<revision>1<", "<revision>5<"), encoding="utf-8")
    site.put("rain.xml", "alder.2.1", "Another title")
    assert changes(site.built())["alder.2.5"] == "unchanged"
    site.put("rain.xml", "alder.2.1", "A third title")
    assert changes(site.built())["alder.2.6"] == "raised"


def test_a_list_written_by_hand_is_taken_as_it_is_and_remembers_from_then_on(site: SiteFolder) -> None:
    site.build()
    text = re.sub(r"\n *<\?metaharvest.*\?>", "", site.list_file.read_text(encoding="utf-8"))
    assert "metaharvest" not in text
    site.list_file.write_text(text.replace("<revision>1<", "<revision>3<"), encoding="utf-8")
    assert changes(site.built()) == {"alder.1.4": "unchanged", "alder.2.3": "unchanged"}
    site.put("rain.xml", "alder.2.1", "Another title")
    assert changes(site.built()) == {"alder.1.4": "unchanged", "alder.2.4": "raised"}


def test_what_another_program_took_from_the_list_or_put_into_it_does_no_harm(site: SiteFolder) -> None:
    site.build()
    text = site.list_file.read_text(encoding="utf-8")
    # An entry that was copied, a memory that means nothing, one of another program.
    text = re.sub(r'docid="alder\.2\.1"', 'docid="alder.99.1"', text)
    text = re.sub(r'sha256="[0-9a-f]+"', 'sha256="?"', text, count=1).replace("</docid>", "<?other?></docid>", 1)
    site.list_file.write_text(text, encoding="utf-8")
    assert changes(site.built()) == {"alder.1.4": "unchanged", "alder.2.1": "unchanged"}
    assert "<?other?>" in site.list_file.read_text(encoding="utf-8")
    site.put("rain.xml", "alder.2.1", "Another title")
    assert changes(site.built())["alder.2.2"] == "raised"


def test_a_document_that_comes_back_does_not_get_a_revision_twice(site: SiteFolder) -> None:
    site.build()
    rain = site.path / "rain.xml"
    site.put("rain.xml", "alder.2.1", "Second")
    site.build()
    content = rain.read_bytes()
    rain.unlink()
    told = site.built()
    assert changes(told) == {"alder.1.4": "unchanged", "alder.2.2": "removed"}
    assert site.listed() == {"alder.1.4": "discharge.xml"}
    assert site.built()["written"] is False
    rain.write_bytes(content)
    assert "alder.2.2" in changes(site.built(code=0))
    rain.unlink()
    site.build()
    site.put("rain.xml", "alder.2.1", "Third")
    assert changes(site.built())["alder.2.3"] == "added"


def test_a_renamed_file_and_a_new_server_change_urls_and_no_revisions(site: SiteFolder) -> None:
    site.build()
    (site.path / "rain.xml").rename(site.path / "precipitation.xml")
    assert changes(site.built()) == {"alder.1.4": "unchanged", "alder.2.1": "moved"}
    moved = SiteFolder(site.path, "https://new.example.org/")
    assert set(changes(moved.built()).values()) == {"moved"}
    assert moved.listed() == {"alder.1.4": "discharge.xml", "alder.2.1": "precipitation.xml"}


def test_a_later_version_of_eml_changes_the_type(site: SiteFolder) -> None:
    site.build()
    rain = site.path / "rain.xml"
    rain.write_bytes(rain.read_bytes().replace(NAMESPACE.encode(), b"https://eml.ecoinformatics.org/eml-2.2.0"))
    told = site.built()
    [entry] = [entry for entry in told["entries"] if entry["docid"] == "alder.2.2"]
    assert (entry["document_type"], entry["old_revision"]) == ("https://eml.ecoinformatics.org/eml-2.2.0", 1)


def test_entries_that_are_not_of_this_folder_stay(tmp_path: Path) -> None:
    output = tmp_path / "list.xml"
    rivers = SiteFolder(tmp_path / "rivers", f"{BASE}rivers/")
    birds = SiteFolder(tmp_path / "birds", f"{BASE}birds/")
    rivers.put("1.xml", "rivers.1.1")
    birds.put("1.xml", "birds.1.1")
    rivers.build("-o", output)
    told = birds.built("-o", output)
    assert changes(told) == {"birds.1.1": "added", "rivers.1.1": "elsewhere"}
    rivers.put("1.xml", "rivers.1.1", "Changed")
    assert changes(rivers.built("-o", output)) == {"birds.1.1": "elsewhere", "rivers.1.2": "raised"}


# -- what a person wrote

BY_HAND = f"""<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- Questions: Zoë -->
<?xml-stylesheet href="list.xsl"?>
<harvestList xmlns="eml://ecoinformatics.org/harvestList"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="eml://ecoinformatics.org/harvestList l.xsd">
  <!-- The list of Alder Creek -->

  <!-- the gauge
       at the bridge -->
  <document xmlns=""><docid><scope> alder </scope><identifier>02</identifier> <!-- kept since 1998 -->
    <revision>1</revision></docid><documentType>{NAMESPACE}</documentType>
    <!-- moves in May --><documentURL>{BASE}rain.xml</documentURL></document> <!-- Bo -->
  <document xmlns=""><docid><scope>alder</scope><identifier>1</identifier><revision>4</revision></docid>
    <documentType>{NAMESPACE}</documentType><documentURL>{BASE}discharge.xml</documentURL> <!-- here -->
    <!-- and there -->
  </document>
  <!-- <document>the next one</document> -->
</harvestList>
<!-- the end -->
"""


def test_comments_stay_where_they_belong_when_the_list_is_sorted(site: SiteFolder) -> None:
    site.list_file.write_bytes(BY_HAND.encode("latin-1"))
    assert site.build().code == 0
    hashes = {name: sha256(site.path / name) for name in ("discharge.xml", "rain.xml")}
    assert site.list_file.read_text(encoding="utf-8") == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<!-- Questions: Zoë -->\n"
        '<?xml-stylesheet href="list.xsl"?>\n'
        '<hrv:harvestList xmlns:hrv="eml://ecoinformatics.org/harvestList" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:schemaLocation="eml://ecoinformatics.org/harvestList l.xsd">\n'
        "  <!-- The list of Alder Creek -->\n"
        "\n"
        "  <document>\n"
        "    <docid>\n"
        "      <scope>alder</scope>\n"
        "      <identifier>1</identifier>\n"
        "      <revision>4</revision>\n"
        "    </docid>\n"
        f"    <documentType>{NAMESPACE}</documentType>\n"
        f"    <documentURL>{BASE}discharge.xml</documentURL> <!-- here -->\n"
        "    <!-- and there -->\n"
        f'    <?metaharvest docid="alder.1.4" sha256="{hashes["discharge.xml"]}"?>\n'
        "  </document>\n"
        "  <!-- the gauge\n"
        "       at the bridge -->\n"
        "  <document>\n"
        "    <docid>\n"
        "      <scope>alder</scope>\n"
        "      <identifier>2</identifier> <!-- kept since 1998 -->\n"
        "      <revision>1</revision>\n"
        "    </docid>\n"
        f"    <documentType>{NAMESPACE}</documentType>\n"
        "    <!-- moves in May -->\n"
        f"    <documentURL>{BASE}rain.xml</documentURL>\n"
        f'    <?metaharvest docid="alder.2.1" sha256="{hashes["rain.xml"]}"?>\n'
        "  </document> <!-- Bo -->\n"
        "  <!-- <document>the next one</document> -->\n"
        "</hrv:harvestList>\n"
        "<!-- the end -->\n"
    )
    assert site.built()["written"] is False


def test_the_order_of_the_list_is_kept_where_asked(site: SiteFolder) -> None:
    site.list_file.write_bytes(BY_HAND.encode("latin-1"))
    site.put("new-2.xml", "aaa.2.1")
    site.put("new-1.xml", "aaa.1.1")
    site.build("--keep-order")
    assert list(site.listed()) == ["alder.2.1", "alder.1.4", "aaa.1.1", "aaa.2.1"]
    assert site.built("--keep-order")["written"] is False
    site.build()
    assert list(site.listed()) == ["aaa.1.1", "aaa.2.1", "alder.1.4", "alder.2.1"]


def test_a_comment_stays_though_its_entry_goes(site: SiteFolder) -> None:
    site.list_file.write_bytes(BY_HAND.encode("latin-1"))
    (site.path / "rain.xml").unlink()
    site.build()
    text = site.list_file.read_text(encoding="utf-8")
    assert text.index("at the bridge -->") < text.index("<identifier>1<")


# -- what goes into the documents

ENCODINGS = [
    ("utf-8", "UTF-8", b""),
    ("utf-8", "UTF-8", codecs.BOM_UTF8),
    ("utf-16-le", "UTF-16", codecs.BOM_UTF16_LE),
    ("utf-16-be", "UTF-16", codecs.BOM_UTF16_BE),
    ("latin-1", "ISO-8859-1", b""),
    ("cp1252", "windows-1252", b""),
    ("shift_jis", "Shift_JIS", b""),
]


@pytest.mark.parametrize(("codec", "declared", "mark"), ENCODINGS)
def test_a_raised_revision_goes_into_the_package_id_and_changes_no_other_byte(
    site: SiteFolder, codec: str, declared: str, mark: bytes
) -> None:
    letters = "水位" if codec == "shift_jis" else "Größe" if codec in ("latin-1", "cp1252") else "Größe 水位"
    head = (
        f"<?xml version='1.0'\r\n  encoding='{declared}'?>\r\n<!-- {letters}: packageId=\"alder.9.1\" -->\r"
        f"<?note <eml packageId='x'> ?>\n<eml:eml\txmlns:eml = '{NAMESPACE}' system=\"a>b packageId='no'\"\n"
    )
    tail = f'\' scope="x"><dataset id=\' packageId="alder.9.1"\'><title>{letters} {{}}</title></dataset></eml:eml>\r\n'

    def document(docid: str, title: str) -> bytes:
        return mark + f"{head}  packageId = ' {docid} {tail.format(title)}".encode(codec)

    path = site.put_bytes("odd.xml", document("alder.9.1", "first"))
    site.build("--write")
    assert path.read_bytes() == document("alder.9.1", "first")
    path.write_bytes(document("alder.9.1", "second"))
    told = site.built("--write")
    assert path.read_bytes() == document("alder.9.2", "second")
    assert (told["package_ids_written"], told["findings"]) == (1, [])
    assert site.built("--write")["written"] is False


def test_without_write_the_document_stays_and_its_contact_is_told(site: SiteFolder) -> None:
    site.build()
    rain = site.put("rain.xml", "alder.2.1", "Another title")
    content = rain.read_bytes()
    told = site.built()
    assert rain.read_bytes() == content
    [finding] = told["findings"]
    assert (finding["file"], finding["rule"], finding["level"]) == ("rain.xml", "build.package-id-behind", "warning")
    assert (finding["line"], finding["excerpt"]) == (2, 'packageId="alder.2.1" system="test">')
    assert 'packageId="alder.2.2"' in finding["remedy"]
    # Told as long as it is so; but it is no change.
    told = site.built()
    assert (told["written"], problems(told)) == (False, [("rain.xml", "build.package-id-behind")])


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_package_id_brought_into_line_with_the_list_is_no_change(site: SiteFolder, by_hand: bool) -> None:
    site.build()
    rain = site.put("rain.xml", "alder.2.1", "Another title")
    site.build()
    if by_hand:
        rain.write_bytes(rain.read_bytes().replace(b"alder.2.1", b"alder.2.2"))
    told = site.built(*([] if by_hand else ["--write"]))
    assert b'"alder.2.2"' in rain.read_bytes()
    assert (changes(told)["alder.2.2"], told["findings"]) == ("unchanged", [])
    assert site.built()["written"] is False
    site.put("rain.xml", "alder.2.2", "A third title")
    assert changes(site.built())["alder.2.3"] == "raised"


def test_a_package_id_changed_in_another_way_is_a_change(site: SiteFolder) -> None:
    site.put("rain.xml", "alder.2.5")
    site.build()
    site.put("rain.xml", "alder.2.1")
    assert changes(site.built())["alder.2.6"] == "raised"


def test_a_list_that_is_a_link_to_itself_is_reported(site: SiteFolder) -> None:
    site.list_file.unlink(missing_ok=True)
    site.list_file.symlink_to(site.list_file.name)
    refused = said("list", "build", str(site.path), "--base-url", BASE, "-o", str(site.list_file))
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.endswith("cannot be read: Too many levels of symbolic links.\n")
    assert "Traceback" not in refused.err


def test_files_keep_their_permissions_and_links_stay_links(site: SiteFolder) -> None:
    real = site.put(".store/soil.xml", "alder.3.1")
    link = site.path / "soil.xml"
    link.symlink_to(".store/soil.xml")
    site.build()
    real.chmod(0o640)
    site.list_file.chmod(0o604)
    real.write_bytes(eml("alder.3.1", "Another title"))
    site.build("--write")
    assert link.is_symlink()
    assert real.read_bytes() == eml("alder.3.2", "Another title")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert stat.S_IMODE(site.list_file.stat().st_mode) == 0o604
    names = {path.name for path in site.path.iterdir()}
    assert names == {".store", "discharge.xml", "harvest-list.xml", "rain.xml", "soil.xml"}


def test_a_list_changes_where_the_file_system_refuses_permissions(
    site: SiteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A Windows drive in WSL: https://github.com/microsoft/WSL/issues/41519
    monkeypatch.setattr(os, "fchmod", Mock(side_effect=PermissionError(1, "Operation not permitted")))
    site.build()
    site.put("snow.xml", "alder.9.1")
    assert changes(site.built())["alder.9.1"] == "added"
    assert b'"alder.9.1"' in (site.path / "snow.xml").read_bytes()


def test_a_list_changes_where_folders_cannot_be_synced(site: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network drives refuse it."""
    sync = os.fsync

    def synced(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    site.build()
    site.put("rain.xml", "alder.2.1", "Another title")
    assert changes(site.built("--write"))["alder.2.2"] == "raised"
    assert (site.path / "rain.xml").read_bytes() == eml("alder.2.2", "Another title")


def test_a_new_list_may_be_read_by_the_web_server(site: SiteFolder) -> None:
    before = os.umask(0o022)
    try:
        site.build()
    finally:
        os.umask(before)
    assert stat.S_IMODE(site.list_file.stat().st_mode) == 0o644


# -- what cannot be listed


def test_what_cannot_be_listed_is_told_with_line_and_remedy_and_left_out(site: SiteFolder) -> None:
    site.put("doi.xml", "doi:10.5072/FK2.1.1")
    site.put("uuid.xml", "urn:uuid:6f7a2b3c-0d1e-4f50-8a9b-0c1d2e3f4a5b")
    site.put("words.xml", "Rain at Alder Creek")
    site.put("blank.xml", "alder creek.5.1")
    site.put("zero.xml", "alder.05.1")
    site.put("long.xml", "alder.99999999999999999999.1")
    site.put_bytes("none.xml", eml("").replace(b' packageId=""', b""))
    site.put_bytes("broken.xml", eml("alder.6.1").replace(b"</title>", b""))
    site.put_bytes("empty.xml", b"")
    site.put_bytes("other.xml", b"<?xml version='1.0'?>\n<metadata/>")
    site.put_bytes("future.xml", eml("alder.7.1").replace(b"eml-2.1.1", b"eml-3.0.0"))
    told = site.built(code=1)
    rules = dict(problems(told))
    assert rules == {
        "doi.xml": "build.no-docid",
        "uuid.xml": "build.no-docid",
        "words.xml": "build.no-docid",
        "blank.xml": "build.no-docid",
        "zero.xml": "build.no-docid",
        "long.xml": "build.no-docid",
        "none.xml": "build.no-docid",
        "broken.xml": "xml.mismatched-tag",
        "empty.xml": "xml.empty",
        "other.xml": "eml.not-eml",
        "future.xml": "eml.not-eml",
    }
    by_file = {finding["file"]: finding for finding in told["findings"]}
    assert "is a DOI, and no docid" in by_file["doi.xml"]["message"]
    assert "is a UUID, and no docid" in by_file["uuid.xml"]["message"]
    assert "contains a space" in by_file["blank.xml"]["message"]
    assert "too large" in by_file["long.xml"]["message"]
    for file, finding in by_file.items():
        assert finding["rule"] in RULES
        assert finding["level"] == "error"
        assert finding["remedy"].endswith(".")
        assert finding["line"] or file == "empty.xml", finding
    assert site.listed() == {"alder.1.4": "discharge.xml", "alder.2.1": "rain.xml"}
    said_ = site.build()
    assert "doi.xml:2:57  error  build.no-docid\n" in said_.out
    assert "What to do: Write a docid there" in said_.out


def test_an_entry_stays_as_it_was_while_its_file_is_broken(site: SiteFolder) -> None:
    site.build()
    rain = site.path / "rain.xml"
    before, content = site.list_file.read_bytes(), rain.read_bytes()
    rain.write_bytes(content[:-20])
    told = site.built(code=1)
    assert changes(told)["alder.2.1"] == "held"
    assert site.list_file.read_bytes() == before
    rain.write_bytes(content)
    assert set(changes(site.built()).values()) == {"unchanged"}


def test_two_files_with_one_docid_are_not_listed_but_one_that_was_listed_stays(site: SiteFolder) -> None:
    site.put("a.xml", "alder.3.1")
    site.put("b.xml", "alder.3.1", "Something else")
    told = site.built(code=1)
    assert problems(told) == [("a.xml", "build.copy"), ("b.xml", "build.copy")]
    assert "has the same docid as b.xml: alder.3.1" in told["findings"][0]["message"]
    assert "alder.3.1" not in site.listed()
    site.put("copy of rain.xml", "alder.2.1", "Something else")
    told = site.built("--exclude", "[ab].xml", code=1)
    assert problems(told) == [("copy of rain.xml", "build.copy")]
    assert site.listed()["alder.2.1"] == "rain.xml"


def test_of_several_revisions_the_newest_is_listed_and_the_others_are_told(site: SiteFolder) -> None:
    site.put("rain-old.xml", "alder.2.0", "Before")
    site.put("rain-new.xml", "alder.2.9", "After")
    told = site.built(code=1)
    assert problems(told) == [("rain-old.xml", "build.older-revision"), ("rain.xml", "build.older-revision")]
    assert site.listed()["alder.2.9"] == "rain-new.xml"
    assert problems(site.built("--revisions", "newest")) == []
    told = site.built("--revisions", "all")
    assert changes(told) == {
        "alder.1.4": "unchanged",
        "alder.2.0": "added",
        "alder.2.1": "added",
        "alder.2.9": "unchanged",
    }
    assert site.built("--revisions", "all")["written"] is False


def test_with_all_revisions_only_the_newest_is_raised_and_an_old_one_must_stay_as_it_is(site: SiteFolder) -> None:
    site.put("rain-new.xml", "alder.2.9", "After")
    site.build("--revisions", "all")
    site.put("rain-new.xml", "alder.2.9", "Changed")
    site.put("rain.xml", "alder.2.1", "Changed")
    told = site.built("--revisions", "all", code=1)
    assert changes(told) == {"alder.1.4": "unchanged", "alder.2.1": "unchanged", "alder.2.10": "raised"}
    wrong = [finding for finding in told["findings"] if finding["level"] == "error"]
    assert [finding["rule"] for finding in wrong] == ["build.changed-revision"]
    assert site.built("--revisions", "all", code=1)["written"] is False


@pytest.mark.parametrize("revision", [1, 2])
def test_a_revision_that_was_listed_once_is_not_given_again(site: SiteFolder, revision: int) -> None:
    site.put("rain-new.xml", "alder.2.2", "After")
    site.build("--revisions", "all")
    (site.path / "rain-new.xml").unlink()
    told = site.built()
    assert changes(told) == {"alder.1.4": "unchanged", "alder.2.1": "unchanged", "alder.2.2": "removed"}
    site.put("rain.xml", f"alder.2.{revision}", "Something else")
    assert "alder.2.3" in changes(site.built())


def test_a_document_may_begin_with_revision_0(site: SiteFolder) -> None:
    site.put("soil.xml", "alder.3.0")
    site.build("--write")
    assert "alder.3.0" in site.listed()
    site.put("soil.xml", "alder.3.0", "Changed")
    site.build("--write")
    assert "alder.3.1" in site.listed()


def test_the_largest_revision_is_not_raised_and_the_others_are(site: SiteFolder) -> None:
    most = 2**63 - 1
    path = site.put("last.xml", f"alder.11.{most}")
    site.build()
    before, listed = path.read_bytes().replace(b"A title", b"Changed"), site.listed()
    path.write_bytes(before)
    site.put("rain.xml", "alder.2.1", "Changed")
    told = site.built("--write", code=1)
    assert problems(told) == [("last.xml", "build.last-revision")]
    [finding] = told["findings"]
    assert str(most) in finding["message"]
    assert "identifier" in finding["remedy"]
    assert changes(told) == {"alder.1.4": "unchanged", "alder.2.2": "raised", f"alder.11.{most}": "held"}
    assert path.read_bytes() == before
    assert b'packageId="alder.2.2"' in (site.path / "rain.xml").read_bytes()
    assert site.listed() == {docid.replace("alder.2.1", "alder.2.2"): url for docid, url in listed.items()}
    assert site.build("--write").code == 1
    added = said("list", "add", site.list_file, path, "--write")
    assert (added.code, path.read_bytes()) == (1, before)
    assert "build.last-revision" in added.out + added.err


def test_a_document_that_was_listed_with_the_largest_revision_is_not_listed_with_other_content(
    site: SiteFolder,
) -> None:
    path = site.put("last.xml", f"alder.11.{2**63 - 1}")
    site.build()
    path.unlink()
    site.build()
    site.put("last.xml", "alder.11.1", "Changed")
    assert problems(site.built("--write", code=1)) == [("last.xml", "build.last-revision")]
    assert set(site.listed()) == {"alder.1.4", "alder.2.1"}


def test_while_nothing_can_be_chosen_the_entry_stays(site: SiteFolder) -> None:
    site.build()
    (site.path / "rain.xml").rename(site.path / "a.xml")
    site.put("b.xml", "alder.2.1", "Something else")
    told = site.built(code=1)
    assert changes(told)["alder.2.1"] == "held"


def test_a_list_is_never_emptied(site: SiteFolder) -> None:
    site.build()
    before = site.list_file.read_bytes()
    for name in ("rain.xml", "discharge.xml"):
        (site.path / name).unlink()
    told = site.build()
    assert told.code == 1
    assert "list.empty" in told.out
    assert "nothing was written" in told.out
    assert site.list_file.read_bytes() == before


def test_a_last_list_that_is_not_valid_is_left_alone(site: SiteFolder) -> None:
    for content in (b"", eml("alder.1.1"), b"<hrv:harvestList", b"\x00\x01"):
        site.list_file.write_bytes(content)
        told = site.build()
        assert told.code == 1
        assert "is no valid harvest list: correct it first." in told.err
        assert site.list_file.read_bytes() == content
        told = site.build("--json")
        assert json.loads(told.out)["valid"] is False
        assert told.code == 1


# -- which files


def test_hidden_files_copies_of_editors_and_second_names_are_passed_over(site: SiteFolder) -> None:
    for name in (".draft.xml", "rain.xml~", "rain.xml.bak", "#rain.xml#", ".git/x.xml", ".rain.xml.swp"):
        site.put(name, "alder.2.1", "Something else")
    (site.path / "latest.xml").symlink_to("rain.xml")
    (site.path / "old-list.xml").write_bytes(BY_HAND.encode("latin-1"))
    site.put("notes.txt", "alder.8.1")
    told = site.built()
    assert site.listed() == {"alder.1.4": "discharge.xml", "alder.2.1": "rain.xml"}
    passed = {"#rain.xml#", ".draft.xml", ".rain.xml.swp", "latest.xml", "old-list.xml", "rain.xml.bak", "rain.xml~"}
    assert set(told["passed_over"]) == passed


def test_names_that_urls_cannot_contain_are_encoded(site: SiteFolder) -> None:
    names = {
        "Größe & Co.xml": "Gr%C3%B6%C3%9Fe%20%26%20Co.xml",
        "100%#1?.xml": "100%25%231%3F.xml",
        "sub folder/ü.xml": "sub%20folder/%C3%BC.xml",
        "<'\">.xml": "%3C%27%22%3E.xml",
        "line\nbreak.xml": "line%0Abreak.xml",
        "UPPER.XML": "UPPER.XML",
    }
    for number, name in enumerate(names):
        site.put(name, f"alder.{100 + number}.1")
    broken = os.fsdecode(b"latin-\xe9.xml")
    site.put(broken, "alder.200.1")
    assert site.build().code == 0
    listed = site.listed()
    assert [listed[f"alder.{100 + number}.1"] for number in range(len(names))] == list(names.values())
    assert listed["alder.200.1"] == "latin-%E9.xml"


def test_links_out_of_the_folder_are_told_and_not_followed(site: SiteFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.xml").write_bytes(eml("alder.50.1"))
    (site.path / "secret.xml").symlink_to(outside / "secret.xml")
    (site.path / "gone.xml").symlink_to("nowhere.xml")
    (site.path / "circle.xml").symlink_to("circle.xml")
    (site.path / "more").symlink_to(outside)
    (site.path / "here").symlink_to(".")
    told = site.built(code=1)
    assert problems(told) == [
        ("circle.xml", "build.link"),
        ("gone.xml", "build.link"),
        ("more", "build.link"),
        ("secret.xml", "build.link"),
    ]
    assert [finding["level"] for finding in told["findings"]] == ["error", "error", "warning", "error"]
    assert site.listed() == {"alder.1.4": "discharge.xml", "alder.2.1": "rain.xml"}
    assert problems(site.built("--exclude", "*c*.xml", "--exclude", "gone.xml", "--exclude", "more")) == []


def test_entries_stay_if_their_files_and_folders_cannot_be_read(site: SiteFolder, tmp_path: Path) -> None:
    site.put("more/snow.xml", "alder.3.1")
    site.put("soil.xml", "alder.4.1")
    site.put("pipe.xml", "alder.5.1")
    site.build()
    before = site.listed()
    (site.path / "more").rename(tmp_path / "more")
    (site.path / "more").symlink_to(tmp_path / "more")
    (site.path / "soil.xml").unlink()
    (site.path / "soil.xml").symlink_to("nowhere.xml")
    (site.path / "pipe.xml").unlink()
    os.mkfifo(site.path / "pipe.xml")
    (site.path / "rain.xml").unlink()
    told = site.built(code=1)
    held = {"alder.3.1": "held", "alder.4.1": "held", "alder.5.1": "held"}
    assert changes(told) == {"alder.1.4": "unchanged", "alder.2.1": "removed", **held}
    assert site.listed() == {docid: url for docid, url in before.items() if docid != "alder.2.1"}


def test_a_pipe_and_a_folder_that_look_like_documents_do_no_harm(site: SiteFolder) -> None:
    os.mkfifo(site.path / "pipe.xml")
    (site.path / "folder.xml").mkdir()
    assert problems(site.built(code=1)) == [("pipe.xml", "build.unreadable")]


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")


def build_as_others(site: SiteFolder, *options: str) -> dict[str, Any]:
    done = process_as_others("list", "build", str(site.path), "--base-url", site.base, "--json", *options)
    assert done.returncode == 1, done.stderr
    return dict(json.loads(done.stdout))


@ON_LINUX
def test_files_and_folders_that_may_not_be_read_are_told(site: SiteFolder) -> None:
    site.put("sub/x.xml", "alder.9.1").parent.chmod(0)
    (site.path / "rain.xml").chmod(0)
    try:
        told = build_as_others(site)
    finally:
        (site.path / "sub").chmod(0o700)
    assert problems(told) == [("rain.xml", "build.unreadable"), ("sub", "build.unreadable")]
    assert set(site.listed()) == {"alder.1.4"}


@ON_LINUX
def test_a_package_id_that_may_not_be_written_is_told_and_remembered_as_it_is(site: SiteFolder) -> None:
    sub = site.put("sub/soil.xml", "alder.3.1").parent
    site.build("--write")
    site.put("sub/soil.xml", "alder.3.1", "Changed")
    site.put("rain.xml", "alder.2.1", "Changed")
    sub.chmod(0o555)
    try:
        told = build_as_others(site, "--write")
    finally:
        sub.chmod(0o755)
    assert problems(told) == [("sub/soil.xml", "build.not-written")]
    assert told["package_ids_written"] == 1
    assert set(site.listed()) == {"alder.1.4", "alder.2.2", "alder.3.2"}
    # As soon as it may be written, it is; and it has not changed in the meantime.
    assert changes(site.built("--write"))["alder.3.2"] == "unchanged"
    assert (sub / "soil.xml").read_bytes() == eml("alder.3.2", "Changed")


@ON_LINUX
def test_a_list_that_may_not_be_written_is_told_in_a_sentence(site: SiteFolder) -> None:
    site.path.chmod(0o555)
    try:
        done = process_as_others("list", "build", str(site.path), "--base-url", site.base)
    finally:
        site.path.chmod(0o755)
    assert done.returncode == 2
    assert f"{site.list_file} cannot be written: Permission denied." in done.stderr
    assert "Traceback" not in done.stderr


def test_patterns_say_which_files_are_documents(site: SiteFolder) -> None:
    site.put("soil.eml", "alder.3.1")
    site.put("drafts/soil.xml", "alder.4.1")
    site.put("drafts/deep/soil.xml", "alder.5.1")
    site.build("--pattern", "*.xml", "--pattern", "*.EML", "--exclude", "drafts/deep", "--exclude", "rain*")
    assert set(site.listed().values()) == {"discharge.xml", "soil.eml", "drafts/soil.xml"}


# -- docids from names


def test_docids_come_from_the_names_of_the_files_where_asked(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    site.put("knb-lter.gce.109.6.xml", "doi:10.5072/FK2")
    site.put("alder.0007.2.XML", "")
    site.put("readme.xml", "doi:10.5072/FK3")
    pattern = "{scope}.{identifier}.{revision}.xml"
    told = site.built("--from-names", pattern, code=1)
    assert problems(told) == [("readme.xml", "build.name")]
    assert site.listed() == {"alder.7.2": "alder.0007.2.XML", "knb-lter.gce.109.6": "knb-lter.gce.109.6.xml"}
    site.put("knb-lter.gce.109.6.xml", "doi:10.5072/FK2", "Changed")
    told = site.built("--from-names", pattern, "--write", "--exclude", "readme.xml")
    assert changes(told)["knb-lter.gce.109.7"] == "raised"
    assert b"doi:10.5072/FK2" in (tmp_path / "knb-lter.gce.109.6.xml").read_bytes()


def test_names_without_scope_and_revision_do(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    site.put("gauges/12-discharge.xml", "")
    site.put("gauges/13-rain.xml", "alder.13.4")
    site.put("gauges/14-soil.xml", "birch.2.1")
    options = ("--from-names", "{identifier}-*.xml", "--scope", "alder", "--write")
    told = site.built(*options)
    assert problems(told) == [("gauges/14-soil.xml", "build.package-id-behind")]
    assert "by its name the file is alder.14.1" in told["findings"][0]["message"]
    assert set(site.listed()) == {"alder.12.1", "alder.13.4", "alder.14.1"}
    path = site.put("gauges/13-rain.xml", "alder.13.4", "Changed")
    site.build(*options)
    assert "alder.13.5" in site.listed()
    assert b'packageId="alder.13.5"' in path.read_bytes()
    site.build("--from-names", "gauges/{identifier}-*.xml", "--scope", "birch")
    assert "birch.12.1" in site.listed()


def test_a_name_that_spells_no_docid_is_told(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    site.put("älder.1.1.xml", "alder.1.1")
    told = site.build("--from-names", "{scope}.{identifier}.{revision}.xml")
    assert told.code == 1
    assert "build.name" in told.out
    assert "LATIN SMALL LETTER A WITH DIAERESIS" in told.out


@pytest.mark.parametrize(
    ("pattern", "more", "words"),
    [
        ("{scope}.{number}.xml", (), "{number} is none of {scope}, {identifier} and {revision}"),
        ("{scope}.xml", (), "it has no {identifier}"),
        ("{identifier}.xml", (), "it has no {scope}; name the scope of all documents with --scope"),
        ("{scope}.{identifier}.xml", ("--scope", "alder"), "--scope names one too"),
        ("{scope}.{identifier}.{identifier}.xml", (), "{identifier} is there twice"),
        ("{identifier}.xml", ("--scope", "alder creek"), "contains a space"),
    ],
)
def test_a_pattern_of_names_that_cannot_be_used_is_a_mistake_in_usage(
    site: SiteFolder, pattern: str, more: tuple[str, ...], words: str
) -> None:
    told = site.build("--from-names", pattern, *more)
    assert told.code == 2
    assert words in told.err


# -- where it is on the web


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://www.example.org/eml", "https://www.example.org/eml/a%20b.xml"),
        ("https://www.example.org", "https://www.example.org/a%20b.xml"),
        ("  https://www.example.org/eml/ ", "https://www.example.org/eml/a%20b.xml"),
        ("https://www.example.org/show?format=xml&id=", "https://www.example.org/show?format=xml&id=a%20b.xml"),
        ("https://bücher.example/größe", "https://bücher.example/größe/a%20b.xml"),
        ("file:///srv/eml", "file:///srv/eml/a%20b.xml"),
    ],
)
def test_the_base_url_is_where_the_folder_is(tmp_path: Path, base: str, url: str) -> None:
    site = SiteFolder(tmp_path, base)
    site.put("a b.xml", "alder.1.1")
    assert site.build().code == 0
    assert [document.url for document in documents_of(site.list_file)] == [url]


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("www.example.org/eml", "does not begin with http:// or https://"),
        ("ftp://www.example.org/eml", "it begins with 'ftp:'"),
        ("https://", "no host name"),
        ("https://user:geheim@www.example.org/", "it has a user name"),
        ("https://www.example.org/eml#top", "after #"),
        ("https://www.example.org/a b/", "'https://www.example.org/a%20b/' cannot be used: it contains a space"),
        ("https://www.example.org/eml/harvest-list.xml", "it is the address of a file"),
        ("", "does not begin with"),
    ],
)
def test_a_base_url_that_cannot_be_used_is_a_mistake_in_usage(site: SiteFolder, base: str, words: str) -> None:
    told = said("list", "build", site.path, "--base-url", base)
    assert told.code == 2
    assert words in told.err
    assert "--base-url https://www.example.org/eml/" in told.err
    assert "geheim" not in told.err
    assert not site.list_file.exists()


def test_a_dry_run_tells_and_writes_nothing(site: SiteFolder) -> None:
    told = site.build("--dry-run")
    assert told.code == 0
    assert "would be written: 2 documents (2 new). Nothing was written." in told.out
    assert not site.list_file.exists()
    site.build()
    rain = site.put("rain.xml", "alder.2.1", "Changed")
    content = rain.read_bytes()
    assert "packageId written" in site.build("--dry-run", "--write").out
    assert rain.read_bytes() == content
    assert "alder.2.1" in site.listed()


def test_usage_that_makes_no_sense_is_told_in_a_sentence(site: SiteFolder, tmp_path: Path) -> None:
    for arguments, words in (
        ((site.path, "--base-url", BASE, "-o", tmp_path / "no" / "list.xml"), "There is no folder"),
        ((site.path, "--base-url", BASE, "-o", site.path), "is a directory"),
        ((site.path, "--base-url", BASE, "--scope", "alder"), "--scope goes with --from-names"),
        ((site.path,), "--base-url"),
        ((tmp_path / "nowhere", "--base-url", BASE), "does not exist"),
        ((site.path / "rain.xml", "--base-url", BASE), "is a file"),
    ):
        told = said("list", "build", *arguments)
        assert told.code == 2
        assert words in told.err
        assert "Traceback" not in told.err


def test_json_says_everything_about_every_entry(site: SiteFolder) -> None:
    site.build()
    site.put("rain.xml", "alder.2.1", "Changed")
    told = site.built("--write")
    assert told["list"] == str(site.list_file)
    assert (told["written"], told["dry_run"], told["listed"], told["package_ids_written"]) == (True, False, 2, 1)
    assert told["totals"]["raised"] == 1
    assert sum(told["totals"].values()) == 2
    assert told["entries"][1] == {
        "docid": "alder.2.2",
        "document_id": "alder.2",
        "revision": 2,
        "document_type": NAMESPACE,
        "url": f"{BASE}rain.xml",
        "kind": "raised",
        "old_revision": 1,
        "file": "rain.xml",
        "package_id_written": True,
    }


def test_a_list_with_another_name_is_named_where_a_new_list_begins(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    site.put("rain.xml", "alder.1.1")
    site.build("-o", site.path / "our list.xml")
    told = site.built()
    assert problems(told) == [("our list.xml", "build.list-instead")]
    [finding] = told["findings"]
    assert finding["level"] == "warning"
    assert f"-o '{site.path / 'our list.xml'}'" in finding["remedy"]
    assert problems(site.built()) == [], "the new list goes on"


def test_another_remedy_is_another_problem(site: SiteFolder) -> None:
    site.put("gauge.xml", "gauge")
    site.put("no-revision.xml", "alder.61")
    said = site.build().out
    assert "The packageId 'gauge' is no docid" in said
    assert 'What to do: Write packageId="alder.61.1": scope, number and revision.' in said


def test_an_excerpt_of_a_file_of_windows_has_no_sign_for_its_line_end(site: SiteFolder) -> None:
    content = eml("alder.1.1").replace(b"</title>", b"</titel>").replace(b"\n", b"\r\n")
    site.put_bytes("windows.xml", content)
    said = site.build().out
    assert "xml.mismatched-tag" in said
    assert "</titel>\n" in said


def test_the_same_problem_of_many_files_is_printed_once(site: SiteFolder) -> None:
    for number in range(1, 9):
        site.put(f"no-revision-{number}.xml", f"alder.{number}")
    for name in ("gauge.xml", "gauge-copy.xml", "weir.xml", "weir-copy.xml"):
        site.put(name, f"{name[:4].strip('-')}.1.1")
    said = site.build().out
    assert said.count("is no docid") == 1
    assert "  The same at 7 more places:\n    no-revision-2.xml:" in said
    assert "    and 2 more: --json has all of them.\n" in said
    assert said.count("the same docid as") == 2, "two documents have copies"
    assert said.count("  The same at 1 more place:\n") == 2
    assert len(problems(site.built(code=1))) == 12
