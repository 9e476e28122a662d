"""Small records of each format, in the dialects of repository software; made for these tests."""

from __future__ import annotations

DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
DCTERMS = 'xmlns:dcterms="http://purl.org/dc/terms/"'
XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
OAI_DC = 'xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'

DSPACE = f"""\
<oai_dc:dc {OAI_DC} {DC}>
  <dc:title xml:lang="en_US">Frogs of &lt;i&gt;Alder&lt;/i&gt; Creek</dc:title>
  <dc:creator>Alder, Ann B.</dc:creator>
  <dc:creator>van der Birch, Bo (0000-0002-1825-0097)</dc:creator>
  <dc:contributor>Alder Creek Research Station</dc:contributor>
  <dc:subject>frogs; streams</dc:subject>
  <dc:description>We counted frogs.</dc:description>
  <dc:date>2021-03-04T10:20:30Z</dc:date>
  <dc:date>2020-12</dc:date>
  <dc:type>Thesis</dc:type>
  <dc:type>info:eu-repo/semantics/doctoralThesis</dc:type>
  <dc:identifier>http://hdl.handle.net/10023/1234</dc:identifier>
  <dc:identifier>https://doi.org/10.5063/F1</dc:identifier>
  <dc:identifier>https://repository.example.org/bitstream/10023/1234/1/frogs.pdf</dc:identifier>
  <dc:language>eng</dc:language>
  <dc:relation>info:eu-repo/grantAgreement/EC/H2020/1234</dc:relation>
  <dc:relation>info:eu-repo/semantics/altIdentifier/doi/10.5063/F2</dc:relation>
  <dc:rights>info:eu-repo/semantics/embargoedAccess</dc:rights>
  <dc:date>info:eu-repo/date/embargoEnd/2022-01-31</dc:date>
  <dc:rights>Attribution 4.0 International</dc:rights>
  <dc:rights>http://creativecommons.org/licenses/by/4.0/</dc:rights>
  <dc:publisher>University of Alder</dc:publisher>
</oai_dc:dc>"""

RIOXX_2 = f"""\
<rioxx xmlns="http://www.rioxx.net/schema/v2.0/rioxx/" {DC} {DCTERMS}
    xmlns:ali="http://ali.niso.org/2014/ali/1.0" xmlns:rioxxterms="http://docs.rioxx.net/schema/v2.0/rioxxterms/">
  <ali:license_ref start_date="2022-05-01">https://creativecommons.org/licenses/by-nc/4.0/</ali:license_ref>
  <ali:free_to_read start_date="2022-05-01"/>
  <dc:format>application/pdf</dc:format>
  <dc:identifier>https://eprints.example.org/12/1/frogs</dc:identifier>
  <dc:language>en</dc:language>
  <dc:source>0378-5955</dc:source>
  <dc:title>Frogs of Alder Creek</dc:title>
  <dcterms:dateAccepted>2021-04-30</dcterms:dateAccepted>
  <rioxxterms:author id="http://orcid.org/0000-0002-1825-0097">Alder, Ann</rioxxterms:author>
  <rioxxterms:publication_date>2021</rioxxterms:publication_date>
  <rioxxterms:type>Journal Article/Review</rioxxterms:type>
  <rioxxterms:version>AM</rioxxterms:version>
  <rioxxterms:version_of_record>https://doi.org/10.5063/F1</rioxxterms:version_of_record>
</rioxx>"""

RIOXX_3 = f"""\
<rioxx xmlns="http://www.rioxx.net/schema/v3.0/rioxx/" {DC} {DCTERMS}
    xmlns:rioxxterms="http://docs.rioxx.net/schema/v3.0/rioxxterms/">
  <dc:title>Frogs of Alder Creek</dc:title>
  <rioxxterms:creator>
    <rioxxterms:name>Alder, Ann</rioxxterms:name>
    <rioxxterms:id>https://orcid.org/0000-0002-1825-0097</rioxxterms:id>
  </rioxxterms:creator>
  <rioxxterms:publication_date>2021-05-01</rioxxterms:publication_date>
  <dc:type>https://purl.org/coar/resource_type/c_6501</dc:type>
  <dc:identifier>https://eprints.example.org/12/</dc:identifier>
  <dc:relation rel="item" type="application/pdf" coar_type="https://purl.org/coar/resource_type/c_6501"
    access_rights="https://purl.org/coar/access_right/c_abf2"
    license_ref="https://creativecommons.org/licenses/by/4.0/">https://eprints.example.org/12/1/frogs</dc:relation>
  <dc:relation rel="item" type="text/csv" coar_type="https://purl.org/coar/resource_type/c_ddb1"
    >https://eprints.example.org/12/2/frogs.csv</dc:relation>
  <dc:relation rel="cite-as">https://hdl.handle.net/10023/1234</dc:relation>
  <rioxxterms:ext_relation rel="cite-as" coar_type="https://purl.org/coar/resource_type/c_6501"
    >https://doi.org/10.5063/F1</rioxxterms:ext_relation>
</rioxx>"""

OPENAIRE = f"""\
<oaire:resource xmlns:oaire="http://namespace.openaire.eu/schema/oaire/" {DC} {DCTERMS}
    xmlns:datacite="http://datacite.org/schema/kernel-4">
  <datacite:titles><datacite:title xml:lang="en">Frogs of Alder Creek</datacite:title></datacite:titles>
  <datacite:creators><datacite:creator><datacite:creatorName nameType="Personal">Alder, Ann</datacite:creatorName>
    <datacite:nameIdentifier nameIdentifierScheme="ORCID">0000-0002-1825-0097</datacite:nameIdentifier>
  </datacite:creator></datacite:creators>
  <datacite:dates>
    <datacite:date dateType="Issued">2021-05-01</datacite:date>
    <datacite:date dateType="Available">2023-01-01</datacite:date>
  </datacite:dates>
  <dc:language>eng</dc:language>
  <dc:publisher>Alder Press</dc:publisher>
  <oaire:resourceType resourceTypeGeneral="literature" uri="http://purl.org/coar/resource_type/c_6501"
    >journal article</oaire:resourceType>
  <dc:description xml:lang="en">We counted frogs.</dc:description>
  <datacite:identifier identifierType="Handle">http://hdl.handle.net/10023/1234</datacite:identifier>
  <datacite:relatedIdentifiers>
    <datacite:relatedIdentifier relatedIdentifierType="DOI" relationType="IsVersionOf"
    >10.5063/F1</datacite:relatedIdentifier>
  </datacite:relatedIdentifiers>
  <datacite:rights rightsURI="http://purl.org/coar/access_right/c_f1cf">embargoed access</datacite:rights>
  <oaire:licenseCondition uri="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</oaire:licenseCondition>
  <oaire:file accessRightsURI="http://purl.org/coar/access_right/c_abf2" mimeType="application/pdf"
    objectType="fulltext">https://eprints.example.org/12/1/frogs</oaire:file>
</oaire:resource>"""

DATACITE = """\
<o:oai_datacite xmlns:o="http://schema.datacite.org/oai/oai-1.1/"><o:payload>
<resource xmlns="http://datacite.org/schema/kernel-4">
  <identifier identifierType="DOI">10.5063/F1</identifier>
  <creators>
    <creator><creatorName nameType="Personal">Alder, Ann</creatorName><givenName>Ann</givenName>
      <familyName>Alder</familyName><nameIdentifier nameIdentifierScheme="ORCID">0000-0002-1825-0097</nameIdentifier>
    </creator>
    <creator><creatorName nameType="Organizational">Alder Creek</creatorName>
      <nameIdentifier nameIdentifierScheme="ROR">https://ror.org/02twcfp32</nameIdentifier></creator>
  </creators>
  <titles><title>Frogs of Alder Creek</title><title titleType="Subtitle">Counts</title></titles>
  <publisher>Alder Press</publisher>
  <publicationYear>2021</publicationYear>
  <resourceType resourceTypeGeneral="Dataset">Frog counts</resourceType>
  <contributors><contributor contributorType="DataManager"><contributorName>Birch, Bo</contributorName></contributor>
  </contributors>
  <dates><date dateType="Collected">2019-01-01/2020-12-31</date><date dateType="Updated">2022-01</date></dates>
  <language>en</language>
  <alternateIdentifiers><alternateIdentifier alternateIdentifierType="URL"
    >https://alder.example.org/frogs</alternateIdentifier>
  </alternateIdentifiers>
  <relatedIdentifiers><relatedIdentifier relatedIdentifierType="DOI" relationType="IsSupplementTo"
    >10.5063/F2</relatedIdentifier>
  </relatedIdentifiers>
  <rightsList><rights rightsURI="https://creativecommons.org/publicdomain/zero/1.0/legalcode">CC0</rights></rightsList>
  <descriptions><description descriptionType="Abstract">We counted frogs.</description>
    <description descriptionType="TableOfContents">1 Frogs</description></descriptions>
</resource></o:payload></o:oai_datacite>"""

_MODS = f"""\
<mods:mods xmlns:mods="http://www.loc.gov/mods/v3" {XLINK}>
  <mods:titleInfo xml:lang="en"><mods:nonSort>The</mods:nonSort><mods:title>frogs</mods:title>
    <mods:subTitle>of Alder Creek</mods:subTitle></mods:titleInfo>
  <mods:name type="personal" valueURI="https://orcid.org/0000-0002-1825-0097">
    <mods:namePart type="family">Alder</mods:namePart><mods:namePart type="given">Ann</mods:namePart>
    <mods:role><mods:roleTerm type="code">aut</mods:roleTerm></mods:role></mods:name>
  <mods:name type="personal"><mods:namePart>Birch, Bo</mods:namePart>
    <mods:role><mods:roleTerm type="text">Thesis advisor</mods:roleTerm></mods:role></mods:name>
  <mods:name type="corporate"><mods:namePart>Alder Creek</mods:namePart></mods:name>
  <mods:typeOfResource>text</mods:typeOfResource>
  <mods:genre>doctoral thesis</mods:genre>
  <mods:originInfo><mods:publisher>Alder Press</mods:publisher><mods:dateIssued encoding="w3cdtf">2021</mods:dateIssued>
    <mods:dateCreated point="start">2019</mods:dateCreated><mods:dateCreated point="end">2020</mods:dateCreated>
  </mods:originInfo>
  <mods:language><mods:languageTerm type="code">ger</mods:languageTerm></mods:language>
  <mods:abstract>We counted frogs.</mods:abstract>
  <mods:subject><mods:topic>frogs</mods:topic></mods:subject>
  <mods:identifier type="doi">10.5063/F1</mods:identifier>
  <mods:identifier type="isbn" invalid="yes">1</mods:identifier>
  <mods:location><mods:url access="raw object">https://alder.example.org/1.pdf</mods:url></mods:location>
  <mods:relatedItem type="host"><mods:titleInfo><mods:title>Frogs</mods:title></mods:titleInfo>
    <mods:identifier type="issn">0378-5955</mods:identifier></mods:relatedItem>
  <mods:accessCondition type="use and reproduction" xlink:href="https://creativecommons.org/licenses/by/4.0/"
    >CC BY</mods:accessCondition>
</mods:mods>"""

MODS = f'<mods:modsCollection xmlns:mods="http://www.loc.gov/mods/v3">{_MODS}</mods:modsCollection>'

METS = f"""\
<mets:mets xmlns:mets="http://www.loc.gov/METS/" {XLINK}>
  <mets:dmdSec ID="d"><mets:mdWrap MDTYPE="MODS"><mets:xmlData>{_MODS}</mets:xmlData></mets:mdWrap></mets:dmdSec>
  <mets:fileSec>
    <mets:fileGrp USE="ORIGINAL"><mets:file MIMETYPE="application/pdf">
      <mets:FLocat LOCTYPE="URL" xlink:href="https://alder.example.org/bitstream/2"/></mets:file></mets:fileGrp>
    <mets:fileGrp USE="THUMBS"><mets:file MIMETYPE="image/jpeg">
      <mets:FLocat LOCTYPE="URL" xlink:href="https://alder.example.org/bitstream/3"/></mets:file></mets:fileGrp>
  </mets:fileSec>
</mets:mets>"""

MARC = """\
<collection xmlns="http://www.loc.gov/MARC21/slim"><record>
  <leader>00000nam a2200000 a 4500</leader>
  <controlfield tag="008">210501s2021    xx            000 0 ger d</controlfield>
  <datafield tag="020"><subfield code="a">9783161484100 (pbk.)</subfield></datafield>
  <datafield tag="024" ind1="7"><subfield code="a">10.5063/F1</subfield><subfield code="2">doi</subfield></datafield>
  <datafield tag="100" ind1="1"><subfield code="a">Alder, Ann B.,</subfield><subfield code="d">1950-</subfield>
    <subfield code="0">(orcid)0000-0002-1825-0097</subfield></datafield>
  <datafield tag="245"><subfield code="a">Frogs :</subfield><subfield code="b">of Alder Creek /</subfield>
    <subfield code="c">Ann Alder.</subfield></datafield>
  <datafield tag="264" ind2="1"><subfield code="a">Alder :</subfield><subfield code="b">Alder Press,</subfield>
    <subfield code="c">2021.</subfield></datafield>
  <datafield tag="502"><subfield code="a">Ph.D. University of Alder, 2020</subfield></datafield>
  <datafield tag="520"><subfield code="a">We counted frogs.</subfield></datafield>
  <datafield tag="650"><subfield code="a">Frogs</subfield><subfield code="x">Counts</subfield></datafield>
  <datafield tag="700" ind1="1"><subfield code="a">Birch, Bo</subfield><subfield code="e">editor.</subfield></datafield>
  <datafield tag="710" ind1="2"><subfield code="a">Alder Creek.</subfield><subfield code="4">aut</subfield></datafield>
  <datafield tag="773"><subfield code="t">Frogs</subfield><subfield code="x">0378-5955</subfield></datafield>
  <datafield tag="856" ind1="4" ind2="0"><subfield code="u">https://alder.example.org/1</subfield>
    <subfield code="q">application/pdf</subfield></datafield>
  <datafield tag="856" ind1="4" ind2="2"><subfield code="3">Cover</subfield>
    <subfield code="u">https://alder.example.org/c.jpg</subfield></datafield>
  <datafield tag="540"><subfield code="a">CC BY 4.0</subfield>
    <subfield code="u">https://creativecommons.org/licenses/by/4.0/</subfield></datafield>
</record></collection>"""

_STRING = "<gco:CharacterString>{}</gco:CharacterString>"
_CODE = '<gmd:{0} codeList="#{0}" codeListValue="{1}"/>'


def _party(name: str, role: str, kind: str = "individual") -> str:
    return (
        f"<gmd:CI_ResponsibleParty><gmd:{kind}Name>{_STRING.format(name)}</gmd:{kind}Name>"
        f"<gmd:role>{_CODE.format('CI_RoleCode', role)}</gmd:role></gmd:CI_ResponsibleParty>"
    )


ISO = f"""\
<gmd:MD_Metadata xmlns:gmd="http://www.isotc211.org/2005/gmd" xmlns:gco="http://www.isotc211.org/2005/gco"
    xmlns:gmx="http://www.isotc211.org/2005/gmx" xmlns:gml="http://www.opengis.net/gml/3.2" {XLINK}>
  <gmd:fileIdentifier>{_STRING.format("alder-1")}</gmd:fileIdentifier>
  <gmd:parentIdentifier>{_STRING.format("alder-0")}</gmd:parentIdentifier>
  <gmd:hierarchyLevel>{_CODE.format("MD_ScopeCode", "dataset")}</gmd:hierarchyLevel>
  <gmd:dateStamp><gco:Date>2026-11-20</gco:Date></gmd:dateStamp>
  <gmd:identificationInfo><gmd:MD_DataIdentification>
    <gmd:citation><gmd:CI_Citation>
      <gmd:title>{_STRING.format("Frogs of Alder Creek")}</gmd:title>
      <gmd:date><gmd:CI_Date><gmd:date><gco:Date>2021-05-01</gco:Date></gmd:date>
        <gmd:dateType>{_CODE.format("CI_DateTypeCode", "publication")}</gmd:dateType></gmd:CI_Date></gmd:date>
      <gmd:identifier><gmd:MD_Identifier><gmd:code><gmx:Anchor xlink:href="https://doi.org/10.5063/F1">F1</gmx:Anchor>
        </gmd:code></gmd:MD_Identifier></gmd:identifier>
      <gmd:citedResponsibleParty>{_party("Ann Alder", "author")}</gmd:citedResponsibleParty>
      <gmd:citedResponsibleParty>{_party("Alder Press", "publisher", "organisation")}</gmd:citedResponsibleParty>
    </gmd:CI_Citation></gmd:citation>
    <gmd:abstract>{_STRING.format("We counted frogs.")}</gmd:abstract>
    <gmd:pointOfContact>{_party("Alder Creek", "custodian", "organisation")}</gmd:pointOfContact>
    <gmd:resourceConstraints><gmd:MD_LegalConstraints>
      <gmd:otherConstraints><gmx:Anchor xlink:href="https://creativecommons.org/licenses/by/4.0/">CC BY</gmx:Anchor>
      </gmd:otherConstraints>
      <gmd:otherConstraints><gmx:Anchor xlink:href="http://x.example.org/LimitationsOnPublicAccess/noLimitations">None
        </gmx:Anchor></gmd:otherConstraints>
    </gmd:MD_LegalConstraints></gmd:resourceConstraints>
    <gmd:language>{_CODE.format("LanguageCode", "eng")}</gmd:language>
    <gmd:extent><gmd:EX_Extent><gmd:temporalElement><gmd:EX_TemporalExtent><gmd:extent><gml:TimePeriod gml:id="t">
      <gml:beginPosition>2019-01-01</gml:beginPosition><gml:endPosition>2020-12-31</gml:endPosition>
      </gml:TimePeriod></gmd:extent></gmd:EX_TemporalExtent></gmd:temporalElement></gmd:EX_Extent></gmd:extent>
  </gmd:MD_DataIdentification></gmd:identificationInfo>
  <gmd:distributionInfo><gmd:MD_Distribution><gmd:transferOptions><gmd:MD_DigitalTransferOptions>
    <gmd:onLine><gmd:CI_OnlineResource><gmd:linkage><gmd:URL>https://alder.example.org/frogs.zip</gmd:URL></gmd:linkage>
      <gmd:function>{
    _CODE.format("CI_OnLineFunctionCode", "download")
}</gmd:function></gmd:CI_OnlineResource></gmd:onLine>
    <gmd:onLine><gmd:CI_OnlineResource><gmd:linkage><gmd:URL>https://alder.example.org/frogs</gmd:URL></gmd:linkage>
      <gmd:function>{
    _CODE.format("CI_OnLineFunctionCode", "information")
}</gmd:function></gmd:CI_OnlineResource></gmd:onLine>
  </gmd:MD_DigitalTransferOptions></gmd:transferOptions></gmd:MD_Distribution></gmd:distributionInfo>
</gmd:MD_Metadata>"""

EML = """\
<e:eml xmlns:e="https://eml.ecoinformatics.org/eml-2.2.0" packageId="alder.1.2" system="s">
<dataset>
  <alternateIdentifier system="https://doi.org">doi:10.5063/F1</alternateIdentifier>
  <title>Frogs of<value xml:lang="de">Frösche am</value> Alder Creek</title>
  <creator id="p"><individualName><givenName>Ann</givenName><givenName>B.</givenName><surName>Alder</surName>
    </individualName><userId directory="https://orcid.org">https://orcid.org/0000-0002-1825-0097</userId></creator>
  <creator><organizationName>Alder Creek</organizationName><userId directory="https://ror.org"
    >https://ror.org/02twcfp32</userId>
  </creator>
  <creator><positionName>Data Manager</positionName></creator>
  <associatedParty><references>p</references><role>editor</role></associatedParty>
  <pubDate>2021</pubDate>
  <language>English</language>
  <abstract><para>We counted frogs.</para></abstract>
  <keywordSet><keyword>frogs</keyword></keywordSet>
  <intellectualRights><para>This data package is released under Creative Commons Attribution
    4.0.</para></intellectualRights>
  <licensed><licenseName>Creative Commons Zero v1.0 Universal</licenseName>
    <url>https://spdx.org/licenses/CC0-1.0.html</url><identifier>CC0-1.0</identifier></licensed>
  <distribution><online><url function="information">https://alder.example.org/frogs</url></online></distribution>
  <coverage><temporalCoverage><rangeOfDates><beginDate><calendarDate>2019-01-01</calendarDate></beginDate>
    <endDate><calendarDate>2020-12-31</calendarDate></endDate></rangeOfDates></temporalCoverage></coverage>
  <publisher><organizationName>Alder Press</organizationName></publisher>
  <literatureCited><bibtex>@article{a, doi = {10.5063/F2}}</bibtex></literatureCited>
  <dataTable><physical><distribution><online><url function="download">https://alder.example.org/frogs.csv</url></online>
    </distribution></physical></dataTable>
  <otherEntity><physical><distribution><online><url function="download"
    >https://alder.example.org/notes.pdf</url></online>
    </distribution></physical></otherEntity>
</dataset></e:eml>"""

ATOM = """\
<entry xmlns="http://www.w3.org/2005/Atom">
  <id>https://alder.example.org/ore.xml</id>
  <link rel="alternate" href="https://repository.example.org/handle/10023/1234"/>
  <link rel="http://www.openarchives.org/ore/terms/aggregates" type="application/pdf"
    href="https://repository.example.org/1"/>
  <published>2021-05-01T00:00:00Z</published>
  <title>Frogs of Alder Creek</title>
  <author><name>Alder, Ann</name></author>
</entry>"""

RDF = f"""\
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" {DC} {DCTERMS}
    xmlns:ore="http://www.openarchives.org/ore/terms/">
  <rdf:Description rdf:about="https://alder.example.org/aggregation"><dc:title>Frogs of Alder Creek</dc:title>
    <dcterms:creator>Alder, Ann</dcterms:creator>
    <ore:aggregates rdf:resource="https://alder.example.org/1.pdf"/></rdf:Description>
</rdf:RDF>"""
