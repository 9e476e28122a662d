"""Small valid documents of the formats other than EML, to break in tests."""

from __future__ import annotations

DC, DCTERMS = "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"
XSI = "http://www.w3.org/2001/XMLSchema-instance"

OAI_DC = f"""\
<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="{DC}" xmlns:xsi="{XSI}"
    xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd">
  <dc:title xml:lang="en">Water temperature</dc:title>
  <dc:creator/>
  <dc:date>2026</dc:date>
</oai_dc:dc>
"""


def qualified(namespace: str) -> str:
    """Qualified Dublin Core in one of the containers that repositories have for it."""
    return f"""\
<q:qualifieddc xmlns:q="{namespace}" xmlns:dc="{DC}" xmlns:dcterms="{DCTERMS}" xmlns:xsi="{XSI}">
  <dc:title>Water temperature</dc:title>
  <dcterms:alternative xml:lang="en">Temperature of water</dcterms:alternative>
  <dcterms:issued xsi:type="dcterms:W3CDTF">2026-11-20</dcterms:issued>
</q:qualifieddc>
"""


ONEDCX = f"""\
<metadata xmlns="http://ns.dataone.org/metadata/schema/onedcx/v1.0" xmlns:dcterms="{DCTERMS}">
  <simpleDc>
    <dcterms:title>Water temperature</dcterms:title>
  </simpleDc>
  <dcTerms>
    <dcterms:issued>2026-11-20</dcterms:issued>
  </dcTerms>
</metadata>
"""

DATACITE = """\
<resource xmlns="http://datacite.org/schema/kernel-3">
  <identifier identifierType="DOI">10.1234/water</identifier>
  <creators><creator><creatorName>Alder, A.</creatorName></creator></creators>
  <titles><title>Water temperature</title></titles>
  <publisher>Alder Creek</publisher>
  <publicationYear>2026</publicationYear>
</resource>
"""

_GMD, _GCO = "http://www.isotc211.org/2005/gmd", "http://www.isotc211.org/2005/gco"
GML, OLD_GML = "http://www.opengis.net/gml/3.2", "http://www.opengis.net/gml"
_TEXT = "<gco:CharacterString>{}</gco:CharacterString>"
_CODE = '<gmd:{0} codeList="http://www.isotc211.org/2005/resources/codeList.xml#{0}" codeListValue="{1}"/>'


def iso(gml: str = GML, root: str = "gmd:MD_Metadata", title: str = _TEXT.format("Water temperature")) -> str:
    """ISO 19139, or 19139-2, with a period of time in this GML."""
    period = "<gml:beginPosition>2020</gml:beginPosition><gml:endPosition>2021</gml:endPosition>"
    return f"""\
<{root} xmlns:gmd="{_GMD}" xmlns:gco="{_GCO}" xmlns:gml="{gml}" xmlns:gmi="http://www.isotc211.org/2005/gmi"
    xmlns:gmx="http://www.isotc211.org/2005/gmx" xmlns:srv="http://www.isotc211.org/2005/srv"
    xmlns:xlink="http://www.w3.org/1999/xlink">
  <gmd:fileIdentifier>{_TEXT.format("alder-1")}</gmd:fileIdentifier>
  <gmd:contact>
    <gmd:CI_ResponsibleParty>
      <gmd:organisationName>{_TEXT.format("Alder Creek")}</gmd:organisationName>
      <gmd:role>{_CODE.format("CI_RoleCode", "owner")}</gmd:role>
    </gmd:CI_ResponsibleParty>
  </gmd:contact>
  <gmd:dateStamp><gco:Date>2026-11-20</gco:Date></gmd:dateStamp>
  <gmd:identificationInfo>
    <gmd:MD_DataIdentification>
      <gmd:citation>
        <gmd:CI_Citation>
          <gmd:title>{title}</gmd:title>
          <gmd:date>
            <gmd:CI_Date>
              <gmd:date><gco:Date>2026-11-20</gco:Date></gmd:date>
              <gmd:dateType>{_CODE.format("CI_DateTypeCode", "creation")}</gmd:dateType>
            </gmd:CI_Date>
          </gmd:date>
        </gmd:CI_Citation>
      </gmd:citation>
      <gmd:abstract>{_TEXT.format("Every hour")}</gmd:abstract>
      <gmd:language>{_TEXT.format("eng")}</gmd:language>
      <gmd:extent>
        <gmd:EX_Extent>
          <gmd:temporalElement>
            <gmd:EX_TemporalExtent>
              <gmd:extent><gml:TimePeriod gml:id="t">{period}</gml:TimePeriod></gmd:extent>
            </gmd:EX_TemporalExtent>
          </gmd:temporalElement>
        </gmd:EX_Extent>
      </gmd:extent>
    </gmd:MD_DataIdentification>
  </gmd:identificationInfo>
</{root}>
"""


def iso_service() -> str:
    """ISO 19139 of a service, ISO 19119."""
    service = (
        "<srv:SV_ServiceIdentification>\\1"
        "<srv:serviceType><gco:LocalName>view</gco:LocalName></srv:serviceType>"
        '<srv:couplingType><srv:SV_CouplingType codeList="x" codeListValue="loose"/></srv:couplingType>'
        "<srv:containsOperations><srv:SV_OperationMetadata>"
        f"<srv:operationName>{_TEXT.format('GetMap')}</srv:operationName>"
        '<srv:DCP><srv:DCPList codeList="x" codeListValue="WebServices"/></srv:DCP>'
        "<srv:connectPoint><gmd:CI_OnlineResource><gmd:linkage><gmd:URL>https://alder.example.org/</gmd:URL>"
        "</gmd:linkage></gmd:CI_OnlineResource></srv:connectPoint>"
        "</srv:SV_OperationMetadata></srv:containsOperations></srv:SV_ServiceIdentification>"
    )
    before, _, rest = iso().partition("<gmd:MD_DataIdentification>")
    shared = rest.partition("<gmd:language>")[0]
    after = rest.partition("</gmd:MD_DataIdentification>")[2]
    return before + service.replace("\\1", shared) + after


_CITATION = """\
<citation><citeinfo><origin>Alder Creek</origin><pubdate>2026</pubdate><title>Water</title></citeinfo></citation>"""
_CONTACT = """\
<cntinfo><cntorgp><cntorg>Alder Creek</cntorg></cntorgp>
<cntaddr><addrtype>mailing</addrtype><city>Alder</city><state>OR</state><postal>97330</postal></cntaddr>
<cntvoice>1</cntvoice></cntinfo>"""


def fgdc(standard: str = "FGDC-STD-001-1998") -> str:
    """FGDC, by this version of the standard."""
    return f"""\
<metadata>
<idinfo>
{_CITATION}
<descript><abstract>Water</abstract><purpose>Water</purpose></descript>
<timeperd><timeinfo><sngdate><caldate>2026</caldate></sngdate></timeinfo><current>ground condition</current></timeperd>
<status><progress>Complete</progress><update>None planned</update></status>
<spdom><bounding><westbc>-123</westbc><eastbc>-122</eastbc><northbc>45</northbc><southbc>44</southbc></bounding></spdom>
<keywords><theme><themekt>None</themekt><themekey>water</themekey></theme></keywords>
<accconst>None</accconst><useconst>None</useconst>
</idinfo>
<metainfo><metd>2026</metd><metc>{_CONTACT}</metc>
<metstdn>Content Standard for Digital Geospatial Metadata</metstdn><metstdv>{standard}</metstdv></metainfo>
</metadata>
"""


_TAXONOMY = """
<taxonomy><keywtax><taxonkt>None</taxonkt><taxonkey>fish</taxonkey></keywtax>
<taxoncl><taxonrn>Kingdom</taxonrn><taxonrv>Animalia</taxonrv></taxoncl></taxonomy>"""


def fgdc_biological() -> str:
    """FGDC in its Biological Data Profile."""
    made = fgdc("FGDC-STD-001.1-1999").replace("</keywords>", f"</keywords>{_TAXONOMY}")
    return made.replace("</title>", "</title><geoform>map</geoform>").replace(
        "<spdom>", "<spdom><descgeog>Creek</descgeog>"
    )


VALID = {
    "oai_dc": OAI_DC,
    "dspace-qdc": qualified("http://dspace.org/qualifieddc/"),
    "worldcat-qdc": qualified("http://worldcat.org/xmlschemas/qdc-1.0/"),
    "onedcx": ONEDCX,
    "datacite": DATACITE,
    "iso": iso(),
    "iso-old-gml": iso(OLD_GML),
    "iso-anchor": iso(title='<gmx:Anchor xlink:href="https://alder.example.org/">Water temperature</gmx:Anchor>'),
    "iso-service": iso_service(),
    "iso-2": iso(root="gmi:MI_Metadata"),
    "fgdc": fgdc(),
    "fgdc-biological": fgdc_biological(),
}
