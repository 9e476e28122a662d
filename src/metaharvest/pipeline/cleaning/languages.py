"""Languages: codes of ISO 639 and names, in English and in the language itself, to ISO 639-1, else 639-3. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from metaharvest.pipeline.letters import folded, word_set

_TABLE = """
aa aar Afar | ab abk Abkhazian | af afr Afrikaans | ak aka Akan | am amh Amharic አማርኛ | an arg Aragonese aragonés |
ar ara arb Arabic العربية arabe árabe arabisch | as asm Assamese | av ava Avaric | ay aym Aymara |
az aze azj Azerbaijani azərbaycan | ba bak Bashkir | be bel Belarusian беларуская |
bg bul Bulgarian български bulgare búlgaro bulgarisch | bi bis Bislama | bm bam Bambara | bn ben Bengali Bangla বাংলা
| bo tib bod Tibetan | br bre Breton brezhoneg | bs bos Bosnian bosanski |
ca cat Catalan Valencian català catalán katalanisch | ce che Chechen | ch cha Chamorro | co cos Corsican corsu |
cr cre Cree | cs cze ces Czech čeština česky tchèque checo tschechisch | cu chu Slavonic | cv chv Chuvash |
cy wel cym Welsh Cymraeg | da dan Danish dansk danois danés dänisch |
de ger deu German Deutsch allemand alemán alemão tedesco duits tysk saksa | dv div Divehi Dhivehi | dz dzo Dzongkha |
ee ewe Ewe | el gre ell Greek ελληνικά grec griego grego griechisch |
en eng English englisch anglais inglés ingles inglês inglese engels engelsk engelska englanti angielski английский
angol anglès 英語 英语 영어 inggris
| eo epo Esperanto |
es spa Spanish Castilian español castellano espagnol spanisch espanhol spagnolo spaans spansk castellà |
et est ekk Estonian eesti | eu baq eus Basque euskara euskera | fa per fas pes Persian Farsi فارسی | ff ful Fulah |
fi fin Finnish suomi finnois finnisch finés finska | fj fij Fijian | fo fao Faroese føroyskt |
fr fre fra French français francais francés frances französisch francês francese frans fransk franska francuski
французский francès
| fy fry Frisian frysk | ga gle Irish Gaeilge | gd gla Gaelic Gàidhlig | gl glg Galician galego gallego |
gn grn Guarani | gu guj Gujarati | gv glv Manx | ha hau Hausa | he heb Hebrew עברית hébreu hebreo hebräisch |
hi hin Hindi हिन्दी | ho hmo | hr hrv scr Croatian hrvatski croate croata kroatisch | ht hat Haitian |
hu hun Hungarian magyar hongrois húngaro ungarisch | hy arm hye Armenian հայերեն | hz her Herero | ia ina Interlingua
| id ind Indonesian Indonesia indonésien | ie ile Interlingue | ig ibo Igbo | ii iii | ik ipk Inupiaq | io ido Ido |
is ice isl Icelandic íslenska islandais isländisch |
it ita Italian italiano italien italienisch italiaans italiensk italià | iu iku Inuktitut |
ja jpn Japanese 日本語 japonais japonés japanisch | jv jav Javanese | ka geo kat Georgian ქართული | kg kon Kongo |
ki kik Kikuyu | kj kua | kk kaz Kazakh қазақ | kl kal Greenlandic Kalaallisut | km khm Khmer | kn kan Kannada |
ko kor Korean 한국어 coréen coreano koreanisch | kr kau Kanuri | ks kas Kashmiri | ku kur Kurdish kurdî | kv kom Komi |
kw cor Cornish | ky kir Kyrgyz Kirghiz кыргызча | la lat Latin latein latín latim latino latina |
lb ltz Luxembourgish Lëtzebuergesch | lg lug Ganda | li lim Limburgish | ln lin Lingala | lo lao Lao |
lt lit Lithuanian lietuvių | lu lub | lv lav lvs Latvian latviešu | mg mlg Malagasy | mh mah Marshallese |
mi mao mri Maori Māori | mk mac mkd Macedonian македонски | ml mal Malayalam | mn mon Mongolian монгол |
mr mar Marathi | ms may msa zsm Malay Melayu | mt mlt Maltese Malti | my bur mya Burmese | na nau Nauru | nd nde |
ne nep Nepali | ng ndo Ndonga |
nl dut nld Dutch Flemish Nederlands néerlandais neerlandés holandés niederländisch holandês olandese vlaams |
nn nno Nynorsk | no nor nob nb Norwegian norsk bokmål bokmal norvégien noruego norwegisch | nr nbl | nv nav Navajo |
ny nya Chichewa | oc oci Occitan | oj oji Ojibwa | om orm Oromo | or ori Oriya Odia | os oss Ossetian |
pa pan Panjabi Punjabi | pi pli Pali | pl pol Polish polski polonais polaco polnisch | ps pus Pashto |
pt por Portuguese português portugues portugués portugais portugiesisch portoghese portugees brazilian |
qu que Quechua | rm roh Romansh rumantsch | rn run Rundi |
ro rum ron mo mol Romanian Moldavian română roumain rumano rumänisch |
ru rus Russian русский russe ruso russisch russo | rw kin Kinyarwanda | sa san Sanskrit | sc srd Sardinian |
sd snd Sindhi | se sme Sami | sg sag Sango | si sin Sinhala |
sk slo slk Slovak slovenčina slovaque eslovaco slowakisch |
sl slv Slovenian Slovene slovenščina slovène esloveno slowenisch | sm smo Samoan | sn sna Shona | so som Somali |
sq alb sqi als Albanian shqip | sr srp scc Serbian српски srpski serbe serbio serbisch | ss ssw Swati | st sot |
su sun Sundanese | sv swe Swedish svenska suédois sueco schwedisch | sw swa swh Swahili Kiswahili | ta tam Tamil தமிழ்
| te tel Telugu | tg tgk Tajik | th tha Thai ไทย | ti tir Tigrinya | tk tuk Turkmen | tl tgl Tagalog | tn tsn Tswana |
to ton Tonga | tr tur Turkish türkçe turc turco türkisch | ts tso Tsonga | tt tat Tatar | tw twi Twi | ty tah Tahitian
| ug uig Uighur Uyghur | uk ukr Ukrainian українська ukrainien ucraniano ukrainisch | ur urd Urdu اردو | uz uzb Uzbek
| ve ven Venda | vi vie Vietnamese việt tiếng | vo vol Volapük | wa wln Walloon | wo wol Wolof | xh xho Xhosa |
yi yid Yiddish | yo yor Yoruba | za zha Zhuang |
zh chi zho cmn Chinese Mandarin 中文 汉语 漢語 chinois chino chinesisch 中国語 中文(简体) 중국어 | zu zul Zulu |
ast Asturian asturianu | yue Cantonese | fil Filipino Pilipino | hsb | dsb | gsw Alemannic | grc | ang | enm | fro |
frm | goh | gmh | nds | scn Sicilian | nap | vec | arc Aramaic | akk Akkadian | sux Sumerian | egy | cop Coptic |
syr Syriac | ota | peo | got Gothic | non | sgn | ase | bfi | haw Hawaiian | ceb Cebuano | ilo | hil | war |
mai Maithili | bho | mni | kok Konkani | sat | doi | awa | mag | raj | tok | tpi | sco Scots | frr | lad Ladino |
rom Romany | nah Nahuatl | myn | yua | arn Mapudungun | chr Cherokee | lkt | moh | nav | crk | hmn | khb | kha | lus |
nso | sot | nyn | luo | kam | mas | mer | bem | tum | umb | kmb | kea | pap Papiamento | srn | jam | crs | tet Tetum |
sah Yakut | krl | udm | mhr | myv | mdf | kbd | ady | lez | inh | kum | nog | bxr | tyv | xal | ckb | kmr | zza | sma
| smj | smn | sms | liv | vro | csb | szl | rue | hbo
"""


def _read(table: str) -> tuple[dict[str, str], dict[str, str]]:
    """The codes and the names of the table. The first word of an entry is the code to give; short words are codes."""
    codes: dict[str, str] = {}
    names: dict[str, str] = {}
    for entry in table.split("|"):
        words = entry.split()
        for word in words:
            if len(word) <= 3 and word.isascii() and word.islower():
                codes.setdefault(word, words[0])
            else:
                names.setdefault(folded(word), words[0])
    return codes, names


_CODES, _NAMES = _read(_TABLE)

_NONE = frozenset(("und", "mul", "zxx", "mis", "qaa", "xx", "xxx", "other", "n/a", "na", "none", "unknown", "misc"))
_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]{1,8}){0,4}")
_ADDRESS = re.compile(
    r"https?://(?:www\.)?(?:lexvo\.org/(?:page/|id/)?iso639-[13]/|id\.loc\.gov/vocabulary/(?:iso639-[1-3]|languages)/|"
    r"publications\.europa\.eu/resource/authority/language/|iso639-3\.sil\.org/code/)([a-z]{2,3})/?",
    re.IGNORECASE,
)
_MORE = re.compile(r"[;,/|()\[\]:]|\s-\s|\s&\s|\band\b|\bund\b|\bet\b|\by\b|\be\b")
_ASIDE = word_set("""
    in language langue sprache bahasa modern standard american british simplified traditional idioma written text
""")
_SHORT = {
    "engl": "en",
    "ingl": "en",
    "fran": "fr",
    "deut": "de",
    "ital": "it",
    "esp": "es",
    "jp": "ja",
    "cn": "zh",
    "cz": "cs",
    "gr": "el",
}
_FORMER = {"iw": "he", "ji": "yi", "in": "id"}
"""Codes before 1989, which Java writes in its locales: https://github.com/DSpace/dspace-xmlui-lang/pull/40."""


@lru_cache(5_000)
def language_of(text: str) -> str | None:
    """The ISO 639-1 code of a language (639-3 without one): from a code, a tag such as `en-GB`, an address or a name.

    None for a text that names no language, or no single one.
    """
    text = folded(text[:200]).strip(" .'\"")
    if not text or text in _NONE:
        return None
    if found := _ADDRESS.fullmatch(text):
        text = found[1]
    if found := _TAG.fullmatch(text):
        if code := _CODES.get(found[1]) or _FORMER.get(found[1]):
            return code
        if found[1] == text and text in _SHORT:
            return _SHORT[text]
    if name := _NAMES.get(text) or _SHORT.get(text.rstrip(".")):
        return name
    found_codes = {code for part in _MORE.split(text) if (code := _of_part(part.strip())) is not None}
    return found_codes.pop() if len(found_codes) == 1 else None


def _of_part(part: str) -> str | None:
    """The language that all words of a part name, such as `modern Greek` or `Norwegian Bokmål`."""
    codes = {_of_word(word) for word in part.split() if word not in _ASIDE}
    return codes.pop() if len(codes) == 1 else None


def _of_word(word: str) -> str | None:
    known = _NAMES.get(word)
    if known is None and (found := _TAG.fullmatch(word)):
        known = _CODES.get(found[1])
    return known
