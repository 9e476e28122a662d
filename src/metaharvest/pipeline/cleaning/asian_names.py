"""Names in Han characters, kana and Hangul, and their romanised forms: which part is the family name. Pure.

Lists of frequent Chinese, Japanese and Korean family names decide, such as
https://en.wikipedia.org/wiki/List_of_common_Chinese_surnames. They cover about nine of ten persons; other names are
divided at their usual place, or not at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from metaharvest.pipeline.letters import word_set

_CHINESE_TWO = word_set("""
    欧阳 歐陽 司马 司馬 上官 诸葛 諸葛 司徒 东方 東方 尉迟 尉遲 长孙 長孫 慕容 皇甫 夏侯 公孙 公孫 令狐 宇文 轩辕
    端木 独孤 南宫 南宮 西门 百里 呼延 申屠 太史 闻人 澹台
""")
_CHINESE = frozenset(
    "王李张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱高林何郭马馬罗羅梁宋郑鄭谢謝韩韓唐冯馮于董萧蕭程曹袁邓鄧许許傅沈曾"
    "彭吕呂苏蘇卢盧蒋蔣蔡贾賈丁魏薛叶葉阎閻余潘杜戴夏钟鍾汪田任姜范方石姚谭譚廖邹鄒熊金陆陸郝孔白崔康毛邱秦江史顾顧"
    "侯邵孟龙龍万萬段雷钱錢汤湯尹黎易常武乔喬贺賀赖賴龚龔文庞龐樊兰蘭殷施陶洪翟安颜顏倪严嚴牛温溫芦季俞章鲁魯葛伍韦"
    "韋申尤毕畢聂聶丛焦向柳邢路岳齐齊沿梅莫庄莊辛管祝左涂谷祁时時舒耿牟卜詹关關苗凌费費纪紀靳盛童欧歐甄项項曲成游阳"
    "裴席卫衛查屈鲍位覃霍翁隋植甘景薄单單包司柏宁寧柯阮桂闵解强柴华華车車冉房边邊辜吉饶饒刁瞿戚丘古米池滕晋苑邬臧畅"
    "宫来嵺苟全褚廉简簡娄婁盖符奚木穆党燕郎邸冀谈姬屠连郜晏栾郁商蒙计計喻揭窦迟宇敖糜鄢冷卓花仇艾蓝藍都巩稽井练仲乐"
    "虞卞封竺冼原官衣楚佟栗匡宗应應台巫鞠僧桑荆谌银扬明沙伏岑习胥保和蔺"
)
_JAPANESE = word_set("""
    佐藤 鈴木 高橋 髙橋 田中 伊藤 渡辺 渡邊 渡邉 山本 中村 小林 加藤 吉田 山田 佐々木 山口 松本 井上 木村 斎藤 斉藤
    齋藤 齊藤 清水 山崎 阿部 池田 橋本 山下 石川 中島 中嶋 前田 藤田 後藤 小川 岡田 長谷川 村上 近藤 石井 坂本 遠藤
    青木 藤井 西村 福田 太田 三浦 藤原 岡本 松田 中川 中野 原田 小野 田村 竹内 金子 和田 中山 石田 上田 森田 柴田
    酒井 工藤 横山 宮崎 宮本 内田 高木 安藤 谷口 大野 丸山 今井 高田 藤本 河野 小島 武田 村田 上野 杉山 増田 菅原
    平野 大塚 千葉 久保 松井 小山 岩崎 木下 野口 松尾 菊地 菊池 野村 佐野 新井 古川 大西 島田 水野 桜井 高野 吉川
    山内 西田 川口 西川 北村 五十嵐 安田 中田 川崎 飯田 本田 久保田 川村 沢田 澤田 松岡 大久保 岩田 服部 中西 福島
    田口 川上 永井 大橋 松下 秋山 田辺 樋口 片山 岡崎 望月 大島 平田 荒木 荒井 小松 熊谷 星野 石原 大谷 内藤 栗原
    早川 尾崎 浅野 矢野 宮田 児玉 須藤 大山 土屋 吉村 足立 関口 黒田 馬場 栗田 篠原 小池 奥村 川島 三宅 広瀬 廣瀬
    富田 榎本 市川 小西 河合 榊原 成田 小田 竹中 飯島 宮下 古賀 今村 坂口 松浦 吉岡 辻本 土井 大石 永田 小沢 小澤
    東野 滝沢 竹田 西山 本間 植田 堀内 野田 松村 鎌田 天野 須田 横田 湯川 朝永 江崎 川端 夏目 芥川 大江 村山 根岸
    益川 南部 赤崎 山中 大村 梶田 大隅 本庶 真鍋 吉野 徳川 豊田 本多 三島 太宰 黒澤 小柴 伊東 星 関 東 森 林 原 岡
    堀 辻 畑 南 谷 西 浜 岸 泉 牧 菅 堤 峯 桂 旭 佃 勅使河原 長谷部 小笠原 佐久間 大和田 長曽我部 宇都宮 小野寺
    日比野 波多野 仲宗根 比嘉 金城 宮城 島袋 上原 知念 玉城 渋谷 福井 奥田 田島 森本 柳田 石塚 白石 今野 平井 黒川
    杉本 村井 武藤 西尾 角田 相馬 高山 水谷 吉本 津田 三好 神田 岩本 岡部 森山 大川 長尾 浅井 稲垣 松原 川田 小倉
    寺田 桑原 北川 落合 中井 長田 児島 伊達 井口 梅田 細川 岩井 松永 戸田 神谷 若林 堀田 石橋 大木 亀井 大場 平山
    稲葉 入江 米田 臼井 中谷 高島 坂田 土田 瀬戸 向井 川本 長野 久野 河村 三谷
""")
_KOREAN_TWO = word_set("남궁 황보 제갈 사공 선우 독고 서문 동방")
_KOREAN = frozenset(
    "김이박최정강조윤장임한오서신권황안송전홍유고문양손배백허남심노하곽성차주우구민류나진지엄채원천방공현함변염여추"
    "도소석선설마길연위표명기반라왕금옥육인맹제모탁국어은편용예경봉사부"
)
_SEPARATOR = re.compile(r"[\s,，、・·•　]+")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆ヶ"
_SCRIPT = re.compile(rf"[{_HAN}\u3040-\u30ff\uac00-\ud7a3\s,，、・·•　]+")
_ONLY_HANGUL = re.compile(r"[\uac00-\ud7a3]+")
_LATIN_BEHIND = re.compile(r"\s?[(（][^()（）]{0,80}[)）]$")

_CHINESE_ROMANISED = word_set("""
    wang li zhang liu chen yang zhao huang zhou wu xu sun hu zhu gao lin guo ma luo liang song zheng xie tang feng
    deng cao peng zeng xiao tian dong pan yuan cai jiang yu du ye cheng wei su lu ding ren shen yao zhong cui tan
    liao fan qin shi gu hou shao meng qian jia xiong bai duan lei hao kong mao qiu chang tao yan shang wen ou
    ouyang sima zhuang xue he jin xia fu tsai hsu hsieh chou chiang lü zhan
""")
_KOREAN_ROMANISED = word_set("""
    kim park choi jung jeong kang cho yoon jang lim han oh seo shin kwon hwang ahn song ryu yoo hong jeon moon bae
    baek heo nam noh ko son yun chung lee rhee yi chang
""")

_SYLLABLE = (
    r"(?:zh|ch|sh|[bpmfdtnlgkhjqxrzcsyw])?(?:iang|iong|uang|ang|eng|ing|ong|iao|ian|uai|uan|ai|ei|ao|ou|an|en|in|un|"
    r"ia|ie|iu|ua|uo|ui|ue|er|a|o|e|i|u)"
)
_TWO_SYLLABLES = re.compile(rf"{_SYLLABLE}['’-]?{_SYLLABLE}", re.IGNORECASE)
_HYPHENATED = re.compile(r"[A-Z][a-z]{1,6}-[a-z]{2,6}")
_VIETNAMESE = word_set("""
    nguyen tran pham hoang phan bui ngo duong nguyễn trần lê phạm hoàng huỳnh vũ võ đặng bùi đỗ hồ ngô dương lý
""")
_MIDDLE = word_set("van thi văn thị đức duc ngọc ngoc minh quang hữu huu xuân xuan thanh đình dinh")
_CAPITALISED = re.compile(r"[A-Z][a-z'’-]+")


def in_han_or_hangul(name: str) -> bool:
    """True for a name in Han characters, kana or Hangul, with or without a romanised form behind it."""
    return any(character > "\u3000" for character in name) and bool(_SCRIPT.fullmatch(_plain(name)))


def _plain(name: str) -> str:
    return _LATIN_BEHIND.sub("", unicodedata.normalize("NFKC", name)).strip()


def parts_of_asian_name(name: str) -> tuple[str, str] | None:
    """The family and the given name; None if there is a doubt."""
    plain = _plain(name)
    parts = [each for each in _SEPARATOR.split(plain) if each]
    if len(parts) == 2 and all(len(each) <= 5 for each in parts):
        return parts[0], parts[1]
    if len(parts) != 1 or not 2 <= len(plain) <= 6 or plain != parts[0]:
        return None
    return _korean(plain) if _ONLY_HANGUL.fullmatch(plain) else _han(plain)


def _korean(name: str) -> tuple[str, str] | None:
    if len(name) >= 3 and name[:2] in _KOREAN_TWO:
        return name[:2], name[2:]
    return (name[0], name[1:]) if name[0] in _KOREAN and len(name) <= 4 else None


def _han(name: str) -> tuple[str, str] | None:
    """The longest family name of Japan or China at the beginning; kana belong to the given name of a Japanese."""
    if name[:2] in _CHINESE_TWO and len(name) <= 4 and len(name) > 2:
        return name[:2], name[2:]
    for length in (4, 3, 2):
        if name[:length] in _JAPANESE and len(name) > length:
            return name[:length], name[length:]
    kana = _KANA.search(name)
    if kana:
        return (name[: kana.start()], name[kana.start() :]) if kana.start() else None
    if len(name) <= 3 and name[0] in _CHINESE:
        return name[0], name[1:]
    if len(name) == 4:
        return name[:2], name[2:]
    if len(name) == 3 and name[0] in _JAPANESE:
        return name[0], name[1:]
    return None


def romanised(words: Sequence[str]) -> tuple[str, str] | None:
    """`Wang Xiaoming`, `Kim Min-jun`, `Nguyen Van An`: the family name is first; None if it is not, or in doubt."""
    if not all(_CAPITALISED.fullmatch(each) or not each.isascii() for each in words):
        return None
    first, second = words[0].lower(), words[1].lower()
    if len(words) == 2:
        is_korean = first in _KOREAN_ROMANISED and _HYPHENATED.fullmatch(words[1]) is not None
        return (words[0], words[1]) if is_korean or (first in _CHINESE_ROMANISED and _is_pinyin(second)) else None
    if first in _VIETNAMESE and second in _MIDDLE and words[-1].lower() not in _VIETNAMESE:
        return words[0], " ".join(words[1:])
    return None


def _is_pinyin(word: str) -> bool:
    """True for a given name of two syllables."""
    return _TWO_SYLLABLES.fullmatch(word) is not None and not is_family_name(word)


def is_family_name(word: str) -> bool:
    """True for a frequent family name of Chinese, Korean or Vietnamese in Latin letters."""
    lower = word.lower()
    return lower in _CHINESE_ROMANISED or lower in _KOREAN_ROMANISED or lower in _VIETNAMESE


def are_family_names(words: Sequence[str]) -> bool:
    """True for two words that are family names both: `Li Wei` may be read in either order."""
    return len(words) == 2 and all(is_family_name(each) and each[1:].islower() for each in words)
