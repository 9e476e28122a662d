"""Every rule that a finding can name: what it means, its usual cause, what to do. docs/rules.md is made from this.

The message and remedy of a finding are about one place; the texts here hold for all findings of a rule.
"""

from __future__ import annotations

from metaharvest.model.actions import todo
from metaharvest.model.values import frozen


@frozen
class Rule:
    """One rule: a short title for headings in reports, its usual cause, and its remedy in general.

    `for_contact` is the remedy for a site's contacts, where the remedies of findings are for the administrator.
    `is_ours`: it is about the harvester's own files, settings and targets; reports to contacts do not name them.
    """

    title: str
    cause: str
    remedy: str
    for_contact: str = ""
    is_ours: bool = False


NOTHING_TO_DO = "You need to do nothing: the administrator of the harvester gets a report too, and corrects it."
"""The remedy for contacts where only the administrator can do something."""


def _by_administrator(title: str, cause: str, remedy: str) -> Rule:
    """A rule whose findings only the administrator can do something about."""
    return Rule(title, cause, remedy, for_contact=NOTHING_TO_DO)


def _of_ours(title: str, cause: str, remedy: str) -> Rule:
    """Such a rule about the harvester's own files, settings and targets."""
    return Rule(title, cause, remedy, for_contact=NOTHING_TO_DO, is_ours=True)


RULES: dict[str, Rule] = {
    "findings.more": Rule(
        "More findings than are shown",
        "A document or list has more than 100 findings; the report shows only their number.",
        f"Correct the ones that are shown and rehearse again with {todo('lists.check')}.",
    ),
    # -- file.*: files of the harvester's own machine (fetch/local_files.py)
    "file.not-allowed": Rule(
        "A file that may not be read",
        "A file: URL names a file on the harvester's own machine, and the settings allow the site no folder there, or "
        "the file, or a link in its path, is outside of that folder.",
        "Put the document on a web server and give its https:// URL. The harvester's administrator can allow a folder: "
        'file_folder in [sites."NAME"] of the settings.',
    ),
    "file.missing": Rule(
        "No such file",
        "There is no file at the place of the file: URL.",
        "Put the document where the URL says, or correct the URL.",
    ),
    "file.not-a-file": Rule(
        "Not a file",
        "The file: URL names a folder, a device, a pipe or a socket.",
        "Name the file itself.",
    ),
    "file.unreadable": Rule(
        "The file cannot be read",
        "The harvester's user may not read the file, or a folder that it is in; or the disk fails or is not there.",
        "Let the harvester's user read it. The harvester tries again by itself if that may help.",
    ),
    # -- filter.*: a site's files of filters and of normalising (transform/)
    "filter.bad-file": _of_ours(
        "A file of filters, or of normalising, cannot be used",
        "The file is not there, is not well-formed, has an element or attribute that is not known, or an XPath, a "
        "prefix or a regular expression in it is wrong.",
        f"The administrator should correct the file at the line that is named; {todo('filters.try')}, or "
        f"{todo('normalizing.try')}, tries it. The site is not harvested until then.",
    ),
    "filter.left-out": Rule(
        "Left out by a filter",
        "The filters of the site do not match the document. The document is in order, and it is not wanted.",
        "No action is needed. If the harvester should accept it, the administrator can change the filters of the site.",
    ),
    "filter.failed": _by_administrator(
        "A filter cannot be applied to the document",
        "An XPath of the site's filters, or of its normalising, cannot be evaluated on this document, for instance "
        "because it finds more than ten million nodes.",
        "The administrator should simplify the XPath.",
    ),
    "filter.too-expensive": _by_administrator(
        "Filtering or normalising took too long",
        "An XPath or a regular expression in the files of the site takes more than some seconds on a document. After "
        "three such documents, all others of the site are put off to the next run.",
        "The administrator should simplify the expression: repetitions within repetitions, such as `(a+)+`, and `//` "
        "within the condition of a `//` cost most.",
    ),
    "filter.normalized": _by_administrator(
        "Normalising made the document unacceptable",
        "The received document is in order. The additions of the site's normalising are not.",
        "The administrator should correct the file of the normalising.",
    ),
    # -- full-text.*: the way from a record to its file (pipeline/full_text/)
    "full-text.no-link": Rule(
        "The record leads to no file",
        "The record has no address, or its page has no link that a program can recognise.",
        "Put the address of the file into the record, or `citation_pdf_url` into the head of its page: "
        "https://scholar.google.com/intl/en/scholar/inclusion.html#indexing describes it. Signposting (a header `Link` "
        "with `rel=item`) works, too.",
    ),
    "full-text.missing": Rule(
        "The file is not at its address",
        "The address in the record, or the link on its page, leads to nothing: the server answers 404, 410 or an empty "
        "page. The search keeps a text that was found earlier, unless the server answers 410.",
        "Correct the address, or put the file back. The harvester tries again after 30 days.",
    ),
    "full-text.unreachable": Rule(
        "The server of the file did not answer",
        "The server of the page or the file did not answer, was too slow, or asked for a pause.",
        "The harvester tries again after two days, or after the pause that the server asks for.",
    ),
    "full-text.blocked": Rule(
        "The server does not let programs have the file",
        "A robots.txt forbids the address, a protection service sends a test for browsers, the server answers 403, or "
        "its address is not public.",
        'Allow the user agent "metaharvest" in robots.txt and at the protection service, if the harvester may have the '
        "files. In a private network, put the files on the server of the site.",
    ),
    "full-text.login": Rule(
        "The file needs a login",
        "The link to the file leads to a page that asks for a name and a password.",
        "Open the file to everybody, or write into the record that its access is restricted.",
    ),
    "full-text.licence": Rule(
        "The file is not open",
        "The record says that the access is restricted, or that an embargo has not ended.",
        "If the file is open, correct the access rights in the record. The harvester looks again after the embargo.",
    ),
    "full-text.wrong-type": Rule(
        "The link leads to something other than a text",
        "The address of the file answers with a web page, an image, an archive or another file that no text can be "
        "taken from.",
        "Link the PDF, the XML (JATS or TEI), or the plain text itself.",
    ),
    "full-text.too-large": Rule(
        "The file is too large",
        "The file has more bytes than pipeline.largest_file in the settings.",
        "Publish a smaller version of the file, or ask the administrator of the harvester for a higher limit.",
    ),
    "full-text.too-many-hops": Rule(
        "The file is behind too many pages",
        "More than three pages lie between the address in the record and the file.",
        "Put the address of the file into the record, or `citation_pdf_url` into the head of its page.",
    ),
    "full-text.loop": Rule(
        "The links lead in a circle",
        "The pages or redirects behind the address lead back to each other; some servers do so for visitors without "
        "cookies.",
        "Serve the file without cookies, at an address of its own.",
    ),
    # -- http.*: fetching (fetch/)
    "http.bad-url": Rule(
        "The URL cannot be read",
        "The text has no http:// or https:// in front, no valid host name or port, or contains a line break.",
        "Correct the URL in the harvest list, or in the schedule; write it like https://example.org/metadata/eml.xml.",
    ),
    "http.scheme": Rule(
        "Not an http or https URL",
        "The harvester reads http: and https: URLs. It does not read ftp: or other URLs, and follows no redirects to "
        "them. It reads file: URLs only in a folder that the administrator has allowed for the site, and never by a "
        "redirect.",
        "Put the document on a web server and give its http:// or https:// URL.",
    ),
    "http.address-not-public": Rule(
        "The address is not public",
        "The host name, or a redirect, leads to a private, loopback or other address that is not on the "
        "public internet.",
        "Give a URL that everybody can reach. The harvester's administrator can allow a network in "
        "http.allow_networks, or for one site.",
    ),
    "http.dns": Rule(
        "The host name was not found",
        "The name server does not know the host name, or does not answer.",
        "Check the spelling of the host name; if it is right, ask the operator of the domain.",
    ),
    "http.connection": Rule(
        "The server cannot be reached",
        "The server refused the connection, broke it off, or closed it without an answer.",
        "Check that the web server runs and that no firewall keeps the harvester out. It is tried again by itself.",
    ),
    "http.timeout-connect": Rule(
        "No connection in time",
        "The server did not accept a connection within http.connect_timeout.",
        "Check that the web server runs and that no firewall keeps the harvester out. It is tried again by itself.",
    ),
    "http.timeout-read": Rule(
        "The server fell silent",
        "Nothing more was received for http.read_timeout seconds.",
        "Find out why the web server stops answering. It is tried again by itself.",
    ),
    "http.deadline": Rule(
        "Not received whole in time",
        "The whole exchange, redirects and headers included, took longer than http.document_deadline or "
        "http.list_deadline.",
        "Find out why the web server is slow. It is tried again by itself.",
    ),
    "http.busy": Rule(
        "The harvester's own connections were all in use",
        "Other requests to the same host held all of http.connections_per_host for very long.",
        "The web server answers very slowly. It is tried again by itself.",
    ),
    "http.proxy": _of_ours(
        "The harvester's proxy does not work",
        "The proxy named in http.proxy cannot be reached, or refuses to connect.",
        "The harvester's administrator has to check http.proxy; the site has nothing to do.",
    ),
    "http.tls": Rule(
        "No trustworthy encrypted connection",
        "The certificate has expired, is self-signed, belongs to another host, comes from an unknown "
        "authority, or no common TLS version was found.",
        "Have the certificate renewed, with its intermediate certificates. If it comes from an authority of your "
        "own, the harvester's administrator can trust that authority for one site (its file of trusted certificates), "
        "or for all sites (`ca_file` in `[http]` of the settings, which `check` reads, too).",
    ),
    "http.status": Rule(
        "The server answered with an error",
        "The web server answered with another status than 200, for example 404 Not Found.",
        "Open the URL in a browser. Put the document where the URL says, or correct the URL in the harvest list.",
    ),
    "http.blocked": Rule(
        "A protection service keeps the harvester out",
        'A service in front of the web server answered with a challenge ("Just a moment...", a captcha) '
        "instead of the document.",
        "Send the text in the finding to your web administrator, so that the harvester's User-Agent is let through.",
    ),
    "http.redirects": Rule(
        "Too many redirects",
        "The URL is redirected more often than http.max_redirects, usually in a circle, or until a cookie is sent.",
        "Correct the redirects, or write the final URL into the harvest list.",
    ),
    "http.too-large": Rule(
        "Larger than accepted",
        "The document or list is larger, before or after decompression, than http.max_document_bytes or "
        "http.max_list_bytes.",
        "Check that the URL leads to the metadata and not to the data; otherwise ask the harvester's "
        "administrator for a higher limit.",
    ),
    "http.truncated": Rule(
        "Did not arrive whole",
        "The transfer broke off, fewer bytes came than were announced, or the compressed data have no end.",
        "Find out why the web server breaks off. It is tried again by itself.",
    ),
    "http.empty": Rule(
        "Empty",
        "The server answered with success, but sent nothing; or the file has nothing in it.",
        "Put the document back in its place on the web server.",
    ),
    "http.encoding": Rule(
        "Cannot be decompressed",
        "The answer was marked as compressed, and is damaged or compressed in a way that the harvester did "
        "not ask for.",
        "Turn compression off for this file on the web server, or repair the compressed file.",
    ),
    "http.protocol": Rule(
        "Not a proper HTTP answer",
        "The answer of the server breaks the rules of HTTP, or its headers are far too long.",
        "Check that the URL's port belongs to a web server, and how it is set up.",
    ),
    "http.html-page": Rule(
        "An HTML page instead of XML",
        "The URL leads to a web page: an error page, a login page, or a page about the data set.",
        "Give the URL of the XML document itself; open it in a browser and look at the page's source to make sure.",
    ),
    "http.other": Rule(
        "Could not be fetched",
        "A rare failure: the finding has the message of the library that fetches.",
        "Send the finding to the harvester's administrator.",
    ),
    # -- list.*: harvest lists (sources/harvest_list/)
    "list.not-well-formed": Rule(
        "The list is not well-formed XML",
        "A tag is not closed or closed by another name, a character is not allowed in XML, or other text stands "
        "before or after the list.",
        "Correct the line that is named; a program that writes XML (rather than text that looks like XML) makes "
        "no such mistakes.",
    ),
    "list.ampersand": Rule(
        "`&` is not written as `&amp;`",
        "A URL with several parameters was copied into the list as it is.",
        "Write `&amp;` wherever the list has `&`.",
    ),
    "list.entity": Rule(
        "An entity that XML does not know",
        "An HTML entity such as `&nbsp;` or `&eacute;` stands in the list. XML knows only five, and no others are "
        "expanded.",
        "Write the character itself, or its number, as in `&#233;`.",
    ),
    "list.encoding": Rule(
        "The encoding is not the one that is declared",
        "The list contains Latin-1 characters but does not say so, or declares an encoding in which it is not written.",
        "Save the list as UTF-8, or name its real encoding in its first line. UTF-8, UTF-16 and the single-byte "
        "encodings can be read.",
    ),
    "list.truncated": Rule(
        "The list breaks off",
        "The program that writes the list stopped half-way, the transfer was cut, or an end tag is missing.",
        "Write the list under another name and rename it when it is whole, so that a half-written list is never "
        "fetched.",
    ),
    "list.empty": Rule(
        "The list names no document",
        "The list is an empty file, or has no `document` element.",
        "Check the program that writes the list. A harvest list names one document at least.",
    ),
    "list.html-page": Rule(
        "An HTML page in place of the list",
        "The list URL leads to a login page, an error page or a page about the list.",
        "Open the list URL in a browser where you are not logged in; correct the URL that is registered, or what "
        "the server answers.",
    ),
    "list.root": Rule(
        "Something else than a harvest list",
        "The list URL leads to another XML document, or the root element is misspelled.",
        "Open the list URL in a browser where you are not logged in; correct the URL that is registered, or what "
        "the server answers. An OAI-PMH repository has no list: the administrator registers it with "
        f"{todo('sites.add_repository')}.",
    ),
    "list.namespace": Rule(
        "A wrong namespace",
        "The root element is not in the namespace of harvest lists, or the elements inside it, which belong in no "
        "namespace, are in that one.",
        'Begin the list with `<hrv:harvestList xmlns:hrv="eml://ecoinformatics.org/harvestList">`, with the '
        'prefix on this element alone; or write `<document xmlns="">`.',
    ),
    "list.element": Rule(
        "An element that does not belong there",
        "An element is misspelled (upper and lower case matter), stands at the wrong place, or is not part of a "
        "harvest list.",
        "Use only `document`, `docid`, `scope`, `identifier`, `revision`, `documentType` and `documentURL`.",
    ),
    "list.attribute": Rule(
        "An attribute that does not belong there",
        "An element inside the list has an attribute; the list has none.",
        "Take the attribute out.",
    ),
    "list.text": Rule(
        "Text between the elements",
        "Text stands where only elements may stand, often after an end tag that is too early.",
        "Take the text out, or put it inside its element.",
    ),
    "list.missing": Rule(
        "An element is missing",
        "An entry lacks one of its elements.",
        "Give every entry `docid` (with `scope`, `identifier` and `revision`), `documentType` and `documentURL`.",
    ),
    "list.doubled": Rule(
        "An element is there twice",
        "An entry has the same element twice, often because the end of the entry before it is missing.",
        "Keep one of the two, and write one `document` element for every document.",
    ),
    "list.order": Rule(
        "Elements are in the wrong order",
        "The elements of an entry do not stand in the order that the list's schema prescribes.",
        "Write `docid` (`scope`, `identifier`, `revision`), then `documentType`, then `documentURL`.",
    ),
    "list.scope": Rule(
        "A scope that cannot be used",
        "The scope is empty or too long, or contains white space, a slash, a control character or a character "
        "that is not ASCII.",
        "Use letters, digits, hyphens, dots and underscores; a document id has at most 800 characters.",
    ),
    "list.identifier": Rule(
        "An identifier that is not a whole number",
        "The identifier is empty, not a whole number, negative, or larger than 9223372036854775807.",
        "Write the identifier in digits alone.",
    ),
    "list.revision": Rule(
        "A revision that is not a whole number",
        "The revision is empty, not a whole number, negative, or larger than 9223372036854775807.",
        "Write the revision in digits alone, and raise it by one whenever the document changes.",
    ),
    "list.document-type": Rule(
        "The document type is empty",
        "The element `documentType` contains nothing.",
        "Write the namespace of the document's root element there.",
    ),
    "list.url": Rule(
        "A URL that cannot be fetched",
        "The document's URL is empty, relative, contains spaces, or is not an http or https URL.",
        "Write the whole URL, beginning with https:// or http://, with spaces as %20.",
    ),
    "list.dtd": Rule(
        "A document type definition in the list",
        "The list's DOCTYPE contains declarations of its own. They are never read, since such declarations can be "
        "used for attacks.",
        "Take the DOCTYPE out; a harvest list needs none.",
    ),
    "list.too-deep": Rule(
        "Elements are nested too deep",
        "End tags are missing, so that every entry stands inside the one before it.",
        "Close every element; a harvest list has four levels.",
    ),
    "list.too-large": Rule(
        "A tag or comment is too large",
        "A quotation mark, a `>` or the end of a comment (`-->`) is missing, so that the rest of the list counts "
        "as one piece.",
        "Look at the place where the piece begins, and close it.",
    ),
    "list.too-long": Rule(
        "A value is too long",
        "A text in the list is longer than any scope, type or URL can be, often because an end tag is missing.",
        "Check that its end tag is at the right place.",
    ),
    "list.too-many-problems": Rule(
        "Reading stopped",
        "More than 100,000 things in the list are wrong or unusual.",
        f"Correct the problems that are shown, and rehearse again with {todo('lists.check')}.",
    ),
    "list.file": Rule(
        "A list file that cannot be read",
        "The file given to `check` is not there, is a folder, or may not be read.",
        "Check its name and its permissions.",
    ),
    # -- build.*: findings of commands that make a harvest list (publishing/)
    "build.no-docid": Rule(
        "The packageId is no docid",
        "The packageId is a DOI, a UUID or another identifier, or there is none; a harvest list names documents by "
        "scope, identifier and revision.",
        "Write a docid into the packageId, as in `alder.12.1`. To keep the packageIds, use `list build "
        "--from-names`: it takes the docids from the names of the files.",
    ),
    "build.name": Rule(
        "The name of the file spells no docid",
        "The docids are taken from the names of the files, and this one does not fit the pattern, or has a scope or a "
        "number that no docid has.",
        "Give the file another name, or leave it out with `--exclude`.",
    ),
    "build.copy": Rule(
        "Two files have the same docid",
        "A file was copied, and its packageId was not changed; or the copy was kept on purpose.",
        "Delete the copy or leave it out with `--exclude`; or give the document an identifier of its own.",
    ),
    "build.older-revision": Rule(
        "An older revision of a document that is listed",
        "The folder has several revisions of a document, each in a file of its own. The newest is listed.",
        "Choose with `--revisions newest` or `--revisions all` which ones the list has, or remove the old file.",
    ),
    "build.changed-revision": Rule(
        "An older revision was changed",
        "The content of a revision has changed, and a newer revision is listed beside it. A docid never changes its "
        "content, and harvesters do not fetch it again.",
        "Put the old content back, and publish the change as a new revision.",
    ),
    "build.last-revision": Rule(
        "The revision cannot be raised any more",
        "The content of the document has changed, and it was listed with the largest revision there is.",
        "Publish the document under an identifier of its own, with revision 1.",
    ),
    "build.package-id-behind": Rule(
        "The packageId is not the docid in the list",
        "A revision was raised in the list and not in the document, or a file was named differently than its document.",
        f"Write the docid into the packageId; {todo('lists.build')} does so for the revision.",
    ),
    "build.not-written": Rule(
        "The packageId could not be written",
        "The file may not be written to, or its text is in an encoding that cannot be changed in one place alone.",
        "Write the docid into the packageId yourself.",
    ),
    "build.ending": Rule(
        "An EML document whose file has another ending",
        "The name of the file does not end in .xml or .eml, but often in .xml.txt: editors on Windows add an "
        "ending, and Windows hides it.",
        "Rename the file. To see the ends of names in the Explorer of Windows: View, Show, File name extensions.",
    ),
    "build.link": Rule(
        "A link that is not followed",
        "The link leads out of the folder, where the web server may not look, or to nothing.",
        "Put the file itself into the folder, or leave the link out with `--exclude`.",
    ),
    "build.unreadable": Rule(
        "A file or folder that cannot be read",
        "The user who makes the list may not read it, or it is no file.",
        "Let that user read it, or leave it out with `--exclude`.",
    ),
    "build.list-instead": Rule(
        "A harvest list instead of a document",
        "A harvest list was given as a document for the list.",
        "Name the documents themselves.",
    ),
    # -- xml.*, schema.*, eml.*: documents (validation/)
    "xml.empty": Rule(
        "The document is empty",
        "The file behind the URL has no content, or only white space.",
        "Put the whole document where its URL points to.",
    ),
    "xml.not-xml": Rule(
        "The document is not XML",
        "The URL leads to something else, such as a text or a data file, or text stands before the first tag.",
        "Check the URL, and delete what comes before the first tag.",
    ),
    "xml.not-well-formed": Rule(
        "The document is not well-formed XML",
        "Some other mistake in the use of XML's signs.",
        "Open the document in an XML editor or a browser, and correct it at the place named.",
    ),
    "xml.ampersand": Rule(
        "`&` is not written as `&amp;`",
        "A text or URL with `&` was copied into the document as it is.",
        "Write `&amp;` in place of `&`.",
    ),
    "xml.less-than": Rule(
        "`<` is not written as `&lt;`",
        "A text with `<`, often for 'less than', was copied into the document as it is.",
        "Write `&lt;` in place of `<`.",
    ),
    "xml.mismatched-tag": Rule(
        "A start tag or an end tag is missing, or misspelt",
        "An end tag is missing, misspelt, or in the wrong place.",
        "Close each element with its own name, the one opened last first.",
    ),
    "xml.unclosed": Rule(
        "The document ends too early",
        "The file was cut short, or an end tag is missing.",
        "Upload the file again; if it is whole, add the end tag.",
    ),
    "xml.bad-tag": Rule(
        "A tag is not written as XML wants it",
        "An attribute has no value or no quotes, or a `>` is missing.",
        'Write attributes as `name="value"` and close the tag.',
    ),
    "xml.encoding": Rule(
        "The encoding is not the one declared",
        "The first line declares an encoding in which the document was not saved, or it declares none and is not "
        "UTF-8.",
        "Save the document as UTF-8, or declare its real encoding in its first line.",
    ),
    "xml.bad-character": Rule(
        "A character that XML does not allow",
        "Control characters come along with text copied from word processors and databases.",
        "Delete the character.",
    ),
    "xml.undefined-entity": Rule(
        "An entity that XML does not know",
        "An HTML entity such as `&nbsp;` stands in the document; XML knows only five, and no others are expanded.",
        "Write the character itself, or its number, such as `&#160;`.",
    ),
    "xml.duplicate-attribute": Rule(
        "An attribute is given twice",
        "The same attribute stands twice in one tag.",
        "Keep one of the two.",
    ),
    "xml.undeclared-prefix": Rule(
        "A prefix is not declared",
        "A name such as `stmml:unitList` is used without an `xmlns:stmml` in it or around it.",
        "Declare the prefix in the root element.",
    ),
    "xml.content-after-root": Rule(
        "Something follows the root element",
        "Two documents were joined, or text was left after the last tag.",
        "Delete what comes after the end of the root element.",
    ),
    "xml.declaration-not-first": Rule(
        "The XML declaration is not at the beginning",
        "A blank or an empty line stands before `<?xml`; templates of web pages often leave one.",
        "Delete everything before it.",
    ),
    "xml.bad-declaration": Rule(
        "The XML declaration is wrong",
        "The first line is not written as XML wants it, or names an encoding that the document is not in.",
        'Write `<?xml version="1.0" encoding="UTF-8"?>` and save the document as UTF-8.',
    ),
    "xml.comment": Rule(
        "A comment that XML does not allow",
        "Two hyphens in a row stand within a comment.",
        "Write a single hyphen.",
    ),
    "xml.dtd": Rule(
        "A DOCTYPE with declarations",
        "The document defines entities or attributes of its own; for safety they are not read, so its content could "
        "not be known.",
        "Remove the DOCTYPE and write what its entities stand for.",
    ),
    "xml.too-large-text": Rule(
        "A text that is too long",
        "One text of more than 10 MB, usually data kept inside the metadata.",
        "Put the data into a file of its own and name its URL.",
    ),
    "xml.too-deep": Rule(
        "Elements nested too deeply",
        "More than 256 levels; usually an element is never closed.",
        "Look for the element that is not closed.",
    ),
    "xml.too-many-elements": Rule(
        "Too many elements",
        "The document has more than a million elements and attributes. Checking it would take gigabytes of memory.",
        "Divide it into several documents, or put the data into a file of its own and name its URL.",
    ),
    "schema.missing-element": Rule(
        "A required element is missing",
        "An element that the schema requires is not there, or the ones before it end too early.",
        "Add the element in its place; in most formats the order matters.",
    ),
    "schema.unexpected-element": Rule(
        "An element that is not allowed there",
        "A name is misspelt, in another place than the schema wants it, or of another format.",
        "Remove the element, or correct its name or place.",
    ),
    "schema.wrong-order": Rule(
        "Elements in the wrong order",
        "The schema prescribes the order of elements.",
        "Move the element to its place.",
    ),
    "schema.too-many-elements": Rule(
        "An element too many",
        "An element occurs more often than the schema allows, or two occur that exclude each other.",
        "Remove it, or move it to where it belongs.",
    ),
    "schema.missing-attribute": Rule(
        "A required attribute is missing",
        "An attribute that the schema requires is not there.",
        "Add the attribute.",
    ),
    "schema.unexpected-attribute": Rule(
        "An attribute that is not allowed there",
        "The attribute's name is misspelt, or the schema does not know it in this element.",
        "Remove it, or correct its name.",
    ),
    "schema.not-in-list": Rule(
        "A value that is not in the list of allowed ones",
        "The schema has a fixed list of values for this place; upper and lower case matter.",
        "Take a value from the list.",
    ),
    "schema.empty-text": Rule(
        "A required text is empty",
        "An element or attribute that must have a value has none.",
        "Fill it in, or remove it where it is optional.",
    ),
    "schema.bad-date": Rule(
        "Not a date",
        "A date is not written as YYYY-MM-DD (or YYYY where only the year is known), or does not exist.",
        "Write the date in this form.",
    ),
    "schema.bad-number": Rule(
        "Not a number",
        "A number has a unit, a blank, or a comma for decimals.",
        "Write digits, with a point for decimals.",
    ),
    "schema.out-of-range": Rule(
        "A number out of range",
        "A number is outside its limits, such as a latitude beyond 90 degrees.",
        "Correct the number; longitude and latitude are often interchanged.",
    ),
    "schema.bad-url": Rule(
        "Not a URL, or a doubtful one",
        "A URL has characters that are not allowed in it, such as `[`, a second `#`, or a `%` that begins no code. "
        "A form that the standard still accepts, such as a colon without a port number after it, is a warning.",
        "Write such characters percent-encoded: `%5B` for `[`, `%5D` for `]`, `%23` for `#`, `%25` for `%`.",
    ),
    "schema.bad-value": Rule(
        "A value of the wrong kind",
        "A value does not have the form that the schema requires here.",
        "Compare with the specification of the format, and correct the value.",
    ),
    "schema.unexpected-text": Rule(
        "Text where only elements are allowed",
        "Text was left between tags, or was put into an element that holds only elements.",
        "Remove the text, or move it into the element where it belongs.",
    ),
    "schema.no-type": Rule(
        "A type that the schema does not have",
        "xsi:type names a type, and the schema of the format has no type of that name.",
        "Remove xsi:type from these elements, or offer the records in a format that has the type, such as qualified "
        "Dublin Core.",
    ),
    "schema.other": Rule(
        "Not valid by the schema",
        "The document differs from the schema in a less usual way; the message is the validator's own.",
        "Compare this place with the specification of the format.",
    ),
    "eml.not-eml": Rule(
        "Not an EML document",
        "The root element is not `eml` in the namespace of a version of EML that is known here (2.0.0 to 2.2.0).",
        "Check the URL in the harvest list, and the namespace in the document's root element.",
    ),
    "eml.document-type": Rule(
        "The list's documentType differs",
        "The harvest list gives another type or EML version than the document has.",
        "Write the document's namespace as documentType in the harvest list.",
    ),
    "eml.html": Rule(
        "HTML in the text of the document",
        "A text was copied from a web page or from a word processor, with its HTML tags, such as `<p>`, `<b>` or "
        "`<br>`, and codes such as `&nbsp;`. EML has elements of its own for them.",
        "Write the elements of EML: `<para>` for a paragraph, `<emphasis>`, `<superscript>`, `<subscript>`, `<ulink>`, "
        "`<itemizedlist>` with `<listitem>`; in EML 2.2.0 also Markdown, in `<markdown>`. Or paste the text without "
        "its formatting.",
    ),
    "eml.package-id": Rule(
        "The packageId is no docid",
        "A document that is checked by itself has another kind of packageId (such as a DOI) than "
        "scope.identifier.revision, by which harvest lists name documents.",
        "Write the scope of your site, a number and a revision, as in `your-site.12.1`; or leave it, and give the "
        "document a docid in the list.",
    ),
    "eml.package-id-repeated": Rule(
        "The same packageId in two documents",
        "Two files that were checked together have the same packageId; a harvest list can name only one of them by it.",
        "Give each document an identifier of its own, or the newer one a higher revision.",
    ),
    "eml.package-id-mismatch": Rule(
        "packageId and docid differ",
        "The packageId in the document is not the docid in the harvest list; often the revision was raised in one of "
        "them only.",
        "Make the two agree, and raise both whenever the document changes.",
    ),
    "eml.id-duplicate": Rule(
        "An id that is not unique",
        "Two elements have the same `id`, or one has the packageId as its id.",
        "Give each element an id of its own.",
    ),
    "eml.reference-unresolved": Rule(
        "A reference that leads nowhere",
        "`references` or `describes` names an id that no element of the document has.",
        "Correct the id, or give it to the element that is meant.",
    ),
    "eml.id-with-references": Rule(
        "An element with both id and references",
        "An element that refers to another one must not have an id of its own: that would be circular.",
        "Remove the id, or replace `references` by the content.",
    ),
    "eml.annotation-without-id": Rule(
        "An annotation of something without an id",
        "An element with an `annotation` has no `id`, so nothing says what is annotated.",
        "Give the element an id.",
    ),
    "eml.custom-unit-undefined": Rule(
        "A custom unit that is not defined",
        "A `customUnit` has no `unit` of that id in a `unitList` of the document.",
        "Define the unit in additionalMetadata, or use a standard unit.",
    ),
    "eml.system-differs": Rule(
        "The system of a reference differs",
        "A reference and the element that it names have a different `system` attribute, or only one has it.",
        "Write the same system in both, or in neither.",
    ),
    # -- pipeline.*: the ingestion pipeline (pipeline/)
    "pipeline.entry-refused": _of_ours(
        "The search index does not accept the entry",
        "A value of the document is one that the index cannot hold. The reason has the words of the search server, or "
        "of the library.",
        "Correct the value at the site. The stage tries again by itself after a week, then less often.",
    ),
    "pipeline.unexpected": _of_ours(
        "An unexpected error in the pipeline",
        "A stage of the pipeline met something in the document that it did not expect.",
        "The program's log has the details. The stage is tried again by itself after a day; please report the error.",
    ),
    # -- target.*, site.*, harvest.*: the rest
    "validation.no-schema": Rule(
        "No schema for this format",
        "The site's documents are checked by the schema of their format (very-strict), and there is none here "
        "for the format that the root element names, or it names none: without an xmlns of its own it is in the "
        "namespace of the OAI-PMH answer around it. Such documents are accepted if they are well-formed. Each harvest "
        "reports it once for each format.",
        "Give a root element without an xmlns the xmlns of its format; otherwise no action is needed. The "
        "administrator "
        "can give the site the validation level strict.",
    ),
    "validation.too-expensive": Rule(
        "Checking took too long, or too much memory",
        "The document could not be checked within the time and the memory that the settings allow for one document "
        "([validation] time_limit, memory_limit): elements are nested very deeply, or it has many thousands of ids and "
        "references, or very long values.",
        "Simplify the document. If it is right as it is, the harvester's administrator can raise the limit.",
    ),
    "http.server-stopped": Rule(
        "The server stopped answering",
        "The server failed several times in a row. It got no more requests in this run, and the other documents were "
        "put off.",
        "Check whether the server is up. No other action is needed: the documents are tried again in the next run.",
    ),
    "list.changed-content": Rule(
        "The document was changed, and its revision was not raised",
        "At its URL the document has other bytes than the repository has under the same revision. The harvester does "
        "not fetch a document again while its revision stays. It checks a few documents each night to find such "
        "changes.",
        "Raise the revision by one, in the list and in the document's packageId: then the next harvest brings the "
        "change in. If the change is a mistake, put the old document back.",
    ),
    "list.duplicate": Rule(
        "Listed more than once",
        "The list names the same docid twice; the first entry was used.",
        "Delete one of the two entries, or give the newer document a higher revision.",
    ),
    "list.shrank": Rule(
        "The list lost many of its documents",
        "The list names far fewer documents than at the last harvest: a fifth of them, and at least five, are gone. It "
        "may have been cut short, or the program that writes it did not find all of them.",
        "Put the whole list back, if it was a mistake. Nothing is deleted: the repository keeps what it has.",
    ),
    "list.vanished": Rule(
        "A document is listed no longer",
        "The repository has the document from this site, and the list names no revision of it any more.",
        "Put it back into the list, if it was left out by mistake. Nothing is deleted: the repository keeps it.",
    ),
    "records.missing": Rule(
        "A record is no longer in its repository's list",
        "A complete list of the repository does not name a record that it named before, and the repository did not "
        "report it as deleted. Nothing is deleted.",
        "The repository's keeper should check whether the record was lost, or moved out of the set. If it was "
        "deleted, the repository should report that, as for other records.",
    ),
    "records.moved": Rule(
        "A record has moved to another site of its repository",
        "The repository reports a record as deleted in the list of one site, and names it in the list of another site. "
        "Nothing was deleted: the document goes when no site lists the record any more.",
        "No action is needed if the record was moved on purpose. If it was deleted, the repository should "
        "report that in all of its sets.",
    ),
    "records.many-deletions": Rule(
        "The repository reports too many deletions at once",
        "The repository reports more of the site's documents as deleted than one harvest may delete (a tenth, or its "
        "`--max-loss`; 20 in any case, but with 0 none). None of them was deleted.",
        f"Ask the keeper of the repository. If it is right, the administrator confirms it: {todo('sites.confirm')}.",
    ),
    "records.deletions-wait": Rule(
        "Deletions wait for the list of another site",
        "Several sites belong to one source repository, and the list of one of them broke off or failed. The records "
        "that the repository reports as deleted at another site may have moved there.",
        "No action is needed if the next harvest reads all lists. A site that is not needed is switched off.",
    ),
    "list.same-content": Rule(
        "The new revision is the old one, byte for byte",
        "The list names a higher revision, and its document has exactly the same bytes as the revision in the "
        "repository.",
        "Raise the revision only when the document changes. If it should have changed, check that the right file is "
        "there.",
    ),
    "list.stale": Rule(
        "The list is behind the repository",
        "The highest revision that the list names is below the revision in the repository: an old list was put back, "
        "or a revision was lowered.",
        "If the listed document is the newer one, give it the next revision after the repository's; if not, list the "
        "revision that the repository has.",
    ),
    "target.other-site": Rule(
        "The document belongs to another site",
        "A document belongs to the site that first published it, or to which the administrator has transferred it, and "
        "another site lists the same document id.",
        "If it was transferred from your site, take it out of your list. Otherwise give the document an identifier of "
        f"its own. If it has moved to your site, the administrator transfers it with {todo('documents.transfer')}.",
    ),
    "target.exists": Rule(
        "The repository has this revision by now",
        "The same revision, or a higher one, was stored after the harvester had asked the repository for its "
        "revisions; or "
        "the repository had it before the document was deleted there.",
        "List the document with the next revision, if it is newer.",
    ),
    "target.withdrawn": Rule(
        "The document was withdrawn",
        f"The administrator withdrew the document from the repository with {todo('documents.withdraw')}. The message "
        "gives the reason. The site still lists it.",
        "Take it out of your list. If the repository should have it, ask the administrator, who takes the withdrawal "
        f"back with {todo('documents.readmit')}.",
    ),
    "target.not-stored": _by_administrator(
        "The repository's database refused the document",
        "The document passed every check, but its row could not be written.",
        "The administrator should look into the message that the database gave.",
    ),
    "target.unconfirmed": Rule(
        "An upload was confirmed afterwards",
        "A run was interrupted while it sent the document. The next run asked the repository, which has it.",
        "No action is needed.",
    ),
    "target.lower-revision": Rule(
        "A lower revision was not confirmed",
        "The revisions of a document go in in ascending order. The repository did not say whether a lower one had "
        "arrived, and so the higher ones were not sent.",
        "No action is needed: the next run checks whether it arrived, and sends the higher ones.",
    ),
    "target.other-content": Rule(
        "The repository has other content under this docid",
        "The repository has this revision with other content: somebody else put it there, or a run was interrupted "
        "while it sent the document, and the document is another one by now.",
        "The administrator should compare the two. To replace what the repository has, raise the revision.",
    ),
    "target.settings": _of_ours(
        "The settings of the site's target cannot be used",
        "The settings name a target for the site that cannot be set up.",
        f"The administrator corrects the section of the target; {todo('installation.check')} checks it.",
    ),
    "target.away": _by_administrator(
        "The repository did not answer",
        "The target could not be reached, broke off, or answered that it cannot serve anybody at the moment. The next "
        "run sends the other documents; first it looks up the documents that may have arrived.",
        "No action is needed, unless it lasts: then the administrator asks the people who run the repository.",
    ),
    "target.lost": Rule(
        "The repository no longer has documents of earlier harvests",
        "After each list of changes the harvester asks the target for the last documents of the site. Some of them are "
        "not there: the target was restored from an older copy, or the settings name another one than before. A list "
        "of changes does not name them again.",
        "No action is needed: the next harvest of the site asks its source repository for all records, and brings in "
        f"what is missing. {todo('runs.full')} does so at once.",
        for_contact="No action is needed: the next harvest asks your repository for all records, and brings these in.",
    ),
    "target.tls": _by_administrator(
        "The repository's certificate is not accepted",
        "The certificate of the server has expired, is for another host name, or comes from an authority that this "
        "harvester does not trust; or the server does not encrypt at all where https:// is written.",
        "The keeper of the repository should repair it; for an authority of its own the administrator sets ca_file.",
    ),
    "target.moved": _by_administrator(
        "The repository has moved",
        "It answered with a redirect. No redirect is followed: nobody else may get the harvester's login.",
        "The administrator writes the new address into url in the target's settings.",
    ),
    "target.login": Rule(
        "The repository does not let the harvester in",
        "The token, the certificate, or the user name and password are wrong or have expired, or may not do this.",
        "The administrator renews the login in the target's settings, or asks the people who run the repository for "
        f"the right to write there; {todo('targets.check')} shows the state of the login.",
    ),
    "target.refused": Rule(
        "The repository refused the document",
        "The document passed the harvester's checks, and the repository has rules of its own, or its settings here do "
        "not fit it. The finding has the repository's words.",
        "The finding says what to do, and who can do it.",
    ),
    "target.answer": _by_administrator(
        "The repository's answer was not understood",
        "The address in the settings does not belong to such a repository, or another server answers in its place.",
        f"The administrator checks url in the target's settings; {todo('targets.check')} says what is there.",
    ),
    "target.encoding": Rule(
        "The repository would not keep the document's bytes",
        "Metacat's old interface takes documents as text and writes them again. That gives the same bytes for UTF-8, "
        "ISO-8859-1 and most other encodings, but not for UTF-16 and UTF-32. Such a document is not sent.",
        "Save the document as UTF-8, and list it with the next revision.",
    ),
    "target.name": Rule(
        "The repository cannot have a document of this name",
        "Metacat's old interface takes only names like scope.identifier, with one point and without blanks, and "
        "revisions up to 2,147,483,647.",
        "Give the document a docid of this form. The DataONE interface takes other names too.",
    ),
    "target.unsupported": Rule(
        "The repository cannot do this",
        "It was asked for something that its interface does not have.",
        "The finding names another way to the same thing.",
    ),
    "copy.different": Rule(
        "The target has other bytes under this docid",
        "A docid never changes its content, but the two targets of a copy have different bytes under the same one: "
        "somebody has replaced one of them, or they were fetched at different times from a site that did not raise the "
        "revision. The target keeps what it has.",
        f"Compare the two with {todo('targets.get')}. If the one that is kept is wrong, have the "
        "site list the right one with a higher revision.",
    ),
    "copy.superseded": Rule(
        "The target has a higher revision, and not this one",
        "Revisions go in in ascending order, and the target of the copy has a higher one already, from a harvest, or "
        "because this one was refused before.",
        "No action is needed. An older revision cannot be put below a newer one.",
    ),
    "copy.unreadable": Rule(
        "A document could not be read from the target that it is copied from",
        "The repository lists the document, but does not give its bytes, or gives bytes with another length or "
        "checksum than it has stored.",
        "Look into that repository and its backups: the document is gone, or damaged. If its site still has it, the "
        "next harvest into the new target fetches it from there.",
    ),
    "target.folder-full": _of_ours(
        "There is no room in the folder",
        "The disk of the folder that documents are put into is full, or the harvester's user has no room left on it.",
        "The administrator makes room there. The next run sends the documents again.",
    ),
    "target.folder-refused": _of_ours(
        "The folder cannot be written, or read",
        "The harvester's user may not write into the folder that documents are put into, or something in it, or its "
        "file system can only be read.",
        "The administrator lets the harvester's user write there, or mounts the file system so that it can be written. "
        "The next run sends the documents again.",
    ),
    "target.folder-missing": _of_ours(
        "The folder is not the one that documents went into",
        "The folder has no marker (.metaharvest/folder.json), or another one, than when it was used before: its file "
        "system is not mounted, or the folder was cleared or replaced.",
        "The administrator has the file system mounted. To use the folder as it is now, run "
        f"{todo('targets.rebuild')}.",
    ),
    "target.folder-index": _of_ours(
        "The index of the folder cannot be used",
        "The index (.metaharvest/index.db) is not there or damaged, or files were added to the folder, or taken away, "
        "by something else than the harvester: by hand, by git, or by restoring a copy of it.",
        f"The administrator puts the files back, or builds the index again with {todo('targets.rebuild')}. The next "
        "harvest fetches missing documents again.",
    ),
    "target.folder-link": _of_ours(
        "A file or folder is not what it should be",
        "A symbolic link, or something else that is not a file or folder, is in the place of a document's file or of "
        "a folder on the way to it. Links are not followed, so that no document leaves the folder.",
        "The administrator moves it out of the way.",
    ),
    # -- extraction.*: the text of files (pipeline/extraction/)
    "extraction.encrypted": Rule(
        "The PDF is encrypted",
        "The PDF opens only with a password.",
        "Publish the file without a password. Restrictions on printing and copying do not matter.",
    ),
    "extraction.no-text": Rule(
        "The file has no text",
        "The pages of the PDF are images, as a scanner makes them, or the page has no text of its own.",
        "Run text recognition (OCR) over the file, and publish the result. The harvester does not recognise text.",
    ),
    "extraction.damaged": Rule(
        "The file is damaged",
        "The file is not complete, or it does not follow the rules of its format.",
        "Open the file and save it again, or upload it again.",
    ),
    "extraction.too-expensive": Rule(
        "The file takes too much time or memory",
        "The reading of the file takes more than 30 seconds or 1 GB of memory, or ends the process that reads it. "
        "Damaged files do this, and files that somebody made to do harm.",
        "Print the file into a new PDF, and publish that.",
    ),
    "extraction.too-large": Rule(
        "The file is too large",
        "A PDF has more than 100 MB, another file more than 20 MB (XML: 50 MB), or the text more than 20 million "
        "characters.",
        "Publish a smaller version of the file, without images in high resolution.",
    ),
    "extraction.unknown-type": Rule(
        "The file is of another type",
        "The file is neither PDF nor HTML, plain text, JATS or TEI.",
        "Publish the text as PDF as well.",
    ),
    "extraction.file-missing": _of_ours(
        "The file is not in the store",
        "The settings or the site keep no files, and the text of the file is not known. Or somebody deleted the file. "
        "Or it was damaged: then the stage deleted it, and the log of the program has a line about it.",
        "The administrator should check the folder of [pipeline]. The next run fetches damaged files again. "
        f"{todo('pipeline.retry', stage='extraction')} lets the next run fetch missing files.",
    ),
    "extraction.store-away": _of_ours(
        "The store of files cannot be read",
        "The folder of [pipeline], or the object store at `files`, cannot be read at the moment.",
        "The administrator should check the folder or the store. The stage tries again by itself.",
    ),
    "extraction.service-away": _of_ours(
        "A service for references gives no answer",
        "Crossref or GROBID, at the addresses in [pipeline], cannot be reached, is busy, or answers with something "
        "else. The text and the references are stored without it.",
        "The administrator should check the address. The stage tries again by itself after an hour, then less often.",
    ),
    # -- cleaning.*: outputs from stored documents (pipeline/cleaning/)
    "cleaning.not-xml": Rule(
        "The pipeline cannot read the document",
        "The stored document is not well-formed XML, or has a DOCTYPE with declarations. It was stored before the "
        "harvester refused such documents, or it came from another program.",
        "Correct the document at the site; the harvester fetches it again.",
    ),
    "cleaning.nothing-known": Rule(
        "No title and no identifier",
        "The document has neither in a place where its format has them, so that nobody can find or cite it.",
        "Give the document a title. If it has one, it uses elements or a format that the harvester does not know.",
    ),
    # -- oai.*: OAI-PMH repositories (sources/oai_pmh/)
    "oai.not-oai": Rule(
        "The answer is not one of OAI-PMH",
        "The base URL leads to something else, such as a page for people, or something keeps programs out.",
        "Open the base URL with ?verb=Identify behind it: it must answer with an OAI-PMH document. Ask the "
        "repository's keeper to let the harvester in, or correct the site's base URL.",
    ),
    "oai.dtd": Rule(
        "An answer with a DTD",
        "The repository's answer begins with <!DOCTYPE …>. Declarations in it can change what records say, so it is "
        "not read.",
        "The repository should answer without a DOCTYPE: OAI-PMH needs none.",
    ),
    "oai.error": Rule(
        "The repository refuses a request",
        "It answered with an error of the protocol, such as badArgument.",
        f"Check that the options of the site fit the repository: {todo('repositories.rehearse')} shows what it says.",
    ),
    "oai.no-format": Rule(
        "There is no such metadata format",
        "The repository's list of formats (ListMetadataFormats) does not have the site's prefix.",
        f"Choose one that is there: {todo('repositories.formats')} lists them.",
        for_contact="Offer this format again, if it is gone by mistake; otherwise write to the administrator of the "
        "harvester which one of them to use.",
    ),
    "oai.no-set": Rule(
        "There is no such set",
        "The repository's list of sets (ListSets) does not have a set that the site names.",
        f"Choose one that is there: {todo('repositories.sets')} lists them.",
        for_contact="Offer this set again, if it is gone by mistake; otherwise write to the administrator of the "
        "harvester which sets to use.",
    ),
    "oai.broken-off": Rule(
        "The list is not complete",
        "The repository stopped answering, repeated itself, or sent fewer records than it had announced. Or the list "
        "ended, and the records of some dates could not be fetched: the message says which.",
        "The received records were harvested, and the next harvest asks for the rest. If it happens every night, "
        "report it to the repository's keeper.",
    ),
    "oai.cut-off": Rule(
        "An answer that breaks off",
        "The repository's program stopped in the middle of an answer, often because of one record.",
        f"The repository's keeper should look into its log; {todo('repositories.rehearse')} says where.",
    ),
    "oai.page-failed": Rule(
        "A page of the list could not be fetched",
        "The repository answers a page of its list with an error again and again, often because of one record. Its "
        "records were requested in smaller lists, and at last individually.",
        "The repository's keeper corrects the record that failed. If none failed, the page was too large.",
    ),
    "oai.record-failed": Rule(
        "A record that cannot be fetched",
        "The repository lists the record, but does not deliver it.",
        "The repository's keeper corrects the record. All others of the list are harvested.",
    ),
    "oai.too-large": Rule(
        "A record, or an answer, that is too large",
        "A record has more bytes, elements or namespaces than the harvester reads: max_document_bytes in the section "
        "[http] of "
        "the settings, a million elements and attributes, 100 namespaces at its root element. Or an answer that is "
        "read as a whole has too much.",
        "The repository's keeper should divide the record, or link large data instead of writing it into the record. "
        "All other records are harvested.",
    ),
    "oai.too-long": Rule(
        "A value that is too long",
        "A setSpec has more than 1,024 characters, a record's about containers have more than 1 MB, or another "
        "value that the repository sends is far longer than needed. It was left out or cut; the message gives the "
        "number of values.",
        "The repository's keeper should shorten it.",
    ),
    "oai.encoding": Rule(
        "An answer in an encoding that is not read",
        "The repository's answer declares an encoding such as UTF-7 or EBCDIC, or its XML declaration cannot be read. "
        "OAI-PMH has UTF-8 alone; UTF-16, ISO-8859, Windows and East Asian encodings are read too.",
        "The repository's keeper should send the answers in UTF-8.",
    ),
    "oai.damaged-record": Rule(
        "A record that cannot be read",
        "The record is not well-formed XML, or the answer has only parts of it. It was left out; all other records of "
        "the same answer were accepted.",
        "The repository's keeper corrects the record, best where it is entered, and gives it a new datestamp.",
    ),
    "oai.damaged-text": Rule(
        "Characters of a record were replaced",
        "The record has bytes that are no UTF-8, or characters that XML does not have, often from a word processor.",
        "The repository's keeper should enter the text again: the original characters are lost.",
    ),
    "oai.ill-formed": Rule(
        "Answers that are not well-formed XML",
        "The repository puts its answers together without checking them.",
        "The repository's keeper should have the answers checked: other harvesters may silently lose records.",
    ),
    "oai.no-metadata": Rule(
        "A record without metadata",
        "A record has no metadata, or empty metadata, and is not marked as deleted.",
        'The repository\'s keeper gives it metadata, or has the header say status="deleted".',
    ),
    "oai.metadata-parts": Rule(
        "The metadata of a record are not one element",
        "OAI-PMH has one XML document as the metadata of a record: one element, with everything in it.",
        "The repository's keeper should write the record in this way.",
    ),
    "oai.identifier": Rule(
        "An identifier that cannot be used",
        "A record has no identifier, or one that makes its document id longer than 800 characters.",
        "The repository's keeper gives it one. Without it the record cannot be distinguished from others.",
    ),
    "oai.datestamp": Rule(
        "Datestamps that OAI-PMH does not have",
        "Datestamps are days, or seconds in UTC: 2026-11-20 or 2026-11-20T03:00:00Z.",
        "The repository's keeper should use one of these forms: otherwise harvesters that ask for changes may miss "
        "some.",
    ),
    "oai.clock": Rule(
        "The repository's clock cannot be right",
        "The date of its answers (responseDate) is earlier than in an earlier harvest, or ahead of the date of its "
        "web server, or differs from it by a time zone: then local time is written with a Z. The harvester asks for "
        "changes since that date, and would miss some of them; it listed everything, or changes from earlier on, "
        "instead.",
        "The repository's keeper should correct the clock of the server, or of each server.",
    ),
    "oai.granularity": Rule(
        "Seconds are advertised and not accepted",
        "Identify says that datestamps have seconds, and requests with seconds are refused.",
        "The repository's keeper corrects the granularity. Until then whole days are asked for.",
    ),
    "oai.empty": Rule(
        "The repository lists nothing",
        "It was asked for all records of the site's format, sets and dates, and has none. Each harvest asks for all of "
        "them until it lists some.",
        f"Check the format and the sets of the site: {todo('repositories.sets')} and "
        f"{todo('repositories.formats')} list what is there.",
    ),
    "oai.fewer": Rule(
        "The repository has fewer records than before",
        "The repository reports fewer records than are known, or than at the last full list. A "
        "list of changes does not name records that were lost.",
        f"{todo('runs.full')} lists everything: it shows which records are missing. `--full-every 30` "
        "of the site does so every 30 days.",
        for_contact="The repository's keeper should look for the records. If they were deleted, the repository should "
        "say so (deletedRecord).",
    ),
    "oai.from": Rule(
        "The repository does not take `from` as it should",
        "The harvester asked for changes since the datestamp of the newest record. The repository did not list that "
        "record, or listed much older ones. Each harvest of the site now lists everything.",
        "The repository's keeper should correct `from`: it includes its own moment and everything later, in UTC.",
    ),
    "oai.list-size": Rule(
        "The size of the list is not quite right",
        "Slightly fewer records came than completeListSize had announced, or records changed while the list was read; "
        "if its pages moved because of that, others were left out. A repository that sends fewer by the same number "
        "each time counts records that it does not list.",
        "No action is needed the first time: the same list is requested again.",
        for_contact="No action is needed the first time: the same list is requested again. If it is reported each "
        "time, let the repository announce as many records as it lists (completeListSize).",
    ),
    "oai.token": Rule(
        "An odd resumption token",
        "A list ended in a way that the protocol does not have.",
        "Check that all records are there. The repository's keeper should end the list with an empty token.",
    ),
    "oai.duplicates": Rule(
        "Records that come twice",
        "The same record came again in the same list: pages overlap, or the list moved while it was read.",
        "The repository's keeper should make the pages in an order that does not change.",
    ),
    "oai.protocol": Rule(
        "Something that differs from OAI-PMH",
        "The repository says or does something that the protocol does not have, or leaves something out.",
        "The repository's keeper corrects it: other harvesters may fail on it.",
    ),
    "oai.repository-changed": Rule(
        "The repository has changed",
        "It has another name, base URL, granularity, policy for deleted records, other formats or sets than at the "
        "last harvest.",
        "Check that the change is intended, and that the site's options still fit.",
        for_contact="No action is needed if this is intended, and the formats and sets of your site are still there; "
        "otherwise write to the administrator of the harvester.",
    ),
    "oai.split": Rule(
        "The site was split, as a site has one set now",
        "A site had several sets, and the upgrade has made a site of each set. The first one keeps the name, the log "
        "and the documents; the others are called NAME-SET. Each site lists all of its records once. Then it is known "
        "which documents belong to which site.",
        "No action is needed.",
    ),
    "site.ca-file": _of_ours(
        "The site's own certificate authorities cannot be used",
        f"The file that {todo('sites.set_authorities')} named is not there, cannot be read, or has no certificates "
        "in PEM form.",
        "The administrator should correct the file, or name another one. The site's documents are tried again by "
        "themselves.",
    ),
    "site.row": _of_ours(
        "The registration of a site cannot be used",
        "A row of the schedule has a value that metaharvest does not understand, mostly written there by hand.",
        f"The administrator should correct it with {todo('sites.edit')}, or switches the site off until then.",
    ),
    "http.retry-after": Rule(
        "The server asked to be left alone",
        "The server answered with Retry-After, and asked for a longer pause than the harvester makes within a run. It "
        "got no further requests, and the other documents were put off.",
        "No action is needed: the documents are tried again in the next run. If it happens every night, ask the "
        "operator of the web server to allow the harvester more requests.",
    ),
    "http.robots": Rule(
        "robots.txt forbids the harvester",
        "The robots.txt of the web server does not allow what the harvester asks for. Lists are made to be harvested, "
        "so it is asked for all the same, unless the settings say otherwise ([http] obey_robots).",
        "The operator of the web server should allow the harvester's User-Agent in robots.txt, or remove this address "
        "from it.",
    ),
    "harvest.run-deadline": _by_administrator(
        "The run's deadline passed",
        "The run took longer than the settings allow ([harvester] run_deadline). Documents under way were finished, "
        "the others were put off, and sites that had not begun were left to the next run.",
        "No action is needed for a single case. If it happens every night, the administrator should look for the sites "
        "that take long, or raise the deadline.",
    ),
    "harvest.next-day": _by_administrator(
        "The run of the next day began before all was done",
        "Workers harvest the sites of a run together. They had not finished when the run of the next day was due. That "
        "run took the sites over.",
        "No action is needed for a single case: the next run continues. If it happens every day, the administrator "
        f"should start more workers ({todo('workers.list')}), or see which sites take long.",
    ),
    "harvest.workers-lost": _by_administrator(
        "Workers did not come to the end of the harvest of the site",
        "Five workers began the harvest of this site, one after another, and each of them ended before its part was "
        "done: the system stopped them, as it does where memory is short, or the database refused what they wrote, or "
        "something at the site made them fail.",
        f"The administrator should read what the workers wrote, and see the attempts ({todo('jobs.show')}) and the "
        "memory of the machines. The next run tries the site again.",
    ),
    "harvest.site-deadline": Rule(
        "The deadline for one site passed",
        "The harvest of this site took longer than the settings allow ([harvester] site_deadline). Documents under "
        "way were finished, the others were put off.",
        "No action is needed for a single case. If it happens every night, see why the web server is slow, or ask the "
        "administrator for a later deadline.",
    ),
    "harvest.stopped": Rule(
        "The run was stopped",
        "A person, or the system, stopped the run before its end. Documents under way were finished.",
        "No action is needed: the next run continues with the rest.",
    ),
    "harvest.site-stopped": Rule(
        "A person stopped the harvest of the site",
        "A person stopped the harvest of this site before its end. Documents under way were finished.",
        "No action is needed: the next run continues with the rest.",
    ),
    "harvest.clock": Rule(
        "The clock of the harvester may be wrong",
        "More than 31 days lie between a run and the run before it. Either no run was started for so long, or the "
        "clock was wrong.",
        "The administrator should compare the clock with the time. Old log rows and reports are kept until the next "
        f"run. If dates in the future are left behind, {todo('dates.repair')} repairs them.",
        is_ours=True,
    ),
    "harvest.no-room": _by_administrator(
        "No room for temporary files",
        "The disk where the harvester puts lists while it reads them is full, or may not be written to.",
        "The administrator should make room there, or have TMPDIR name another folder. The site is harvested again in "
        "the next run.",
    ),
    "harvest.no-memory": _by_administrator(
        "Not enough memory",
        "The system gave the harvester no more memory while it worked on this. Other sites are not affected.",
        "The next run tries again. If it happens every night, the administrator should "
        "give the harvester more memory, or find the large documents of this site.",
    ),
    "harvest.database-full": _by_administrator(
        "The database is full",
        "The disk of the database has no room left. The site that has stored most in this run was put off, so that the "
        "documents of other sites could be stored.",
        "The administrator should make room where the database is. The documents are tried again in the next run.",
    ),
    "harvest.not-written": _by_administrator(
        "The database refused a value",
        "A value of this site is too long or too large for the database, as for max_allowed_packet of MariaDB. Only "
        "this site is affected.",
        "The administrator should find out which value it is, and report it to the developers.",
    ),
    "harvest.helper-lost": _by_administrator(
        "The harvester's own process ended",
        "Documents are checked by worker processes beside the run's own. One of them ended before it was done with "
        "this document: the system stopped it, as systems do when memory is short, or the document made it fail.",
        "No action is needed for a single case: the document is tried again by itself. If it happens every night, the "
        "administrator should check whether there is enough memory, and report the document to the developers.",
    ),
    "harvest.no-helper": _by_administrator(
        "The harvester could start no process of its own",
        "A site's own filters and its normalising run in processes beside the run's own, which are ended when they "
        "take too long. The system did not let any start, so the documents of the site were put off.",
        "The administrator should check whether there is enough memory, and how many processes the harvester's user "
        "may have. The documents are tried again by the next run.",
    ),
    "harvest.imported": Rule(
        "A finding of the Metacat Harvester",
        f"It is in a log that was imported with {todo('sites.import_log')}.",
        "No action is needed: the next harvest finds again what is still wrong.",
    ),
    "harvest.surprise": _by_administrator(
        "The harvester itself failed",
        "Something happened that metaharvest did not expect. The outcomes of the site until then are kept, and other "
        "sites continued.",
        "The administrator should report it to the developers, with the traceback that the log keeps. The site is "
        "harvested again in the next run.",
    ),
}


def title_of(rule: str) -> str:
    """The title of a rule; the rule itself if this program does not know it."""
    return RULES[rule].title if rule in RULES else rule


def render() -> str:
    """The text of docs/rules.md, in Markdown: every rule with its cause and remedy, grouped by subject."""
    parts = [
        "# Rules",
        "Every finding in a report names one of these rules. The finding itself says more about the one place; here "
        "is what holds for all of them. This page is made by `python -m metaharvest.rules`.",
    ]
    group = ""
    for name in sorted(RULES):
        rule, prefix = RULES[name], name.partition(".")[0]
        if prefix != group:
            group = prefix
            parts.append(f"## {GROUPS.get(prefix, prefix)}")
        parts.append(f"### {name}\n**{rule.title}.** {rule.cause}\n\n*What to do:* {rule.remedy}")
    return "\n\n".join(parts) + "\n"


GROUPS = {
    "copy": "Copying from one target into another",
    "build": "Making harvest lists",
    "cleaning": "Outputs from stored documents",
    "eml": "EML: what makes a document valid beyond the schema",
    "extraction": "The text of files",
    "filter": "Filters and normalising",
    "file": "Files of the harvester's own machine",
    "findings": "Findings",
    "full-text": "Full text",
    "harvest": "The harvest",
    "http": "Fetching",
    "list": "Harvest lists",
    "pipeline": "The pipeline",
    "records": "Records of repositories",
    "oai": "OAI-PMH repositories",
    "schema": "Schemas of EML and of other formats",
    "site": "Sites",
    "target": "The repository",
    "validation": "Checking",
    "xml": "XML",
}
"""The headings of docs/rules.md by the first part of a rule's id."""


TRACEBACK_RULE = "harvest.surprise"
"""The rule whose excerpt is a traceback: tables have it, for programmers; mails and terminals do not."""

RULES_PAGE = "rules.html"
"""Where docs/rules.md is in the documentation as a site."""


def anchor(rule: str) -> str:
    """What a rule's heading is called on its page: MkDocs drops the dots."""
    return rule.replace(".", "")


if __name__ == "__main__":
    print(render(), end="")
