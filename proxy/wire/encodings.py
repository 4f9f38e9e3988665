"""Which Python codec reads the text of a client with a given client_encoding?

Names only. An encoding that is missing here cannot be chosen by a client (`proxy.wire.settings`).
"""

from __future__ import annotations

#: PostgreSQL's name without punctuation, in capitals, to Python's codec.
CODECS: dict[str, str] = {
    "UTF8": "utf-8",
    "UNICODE": "utf-8",
    "SQLASCII": "utf-8",
    "LATIN1": "iso8859-1",
    "ISO88591": "iso8859-1",
    "LATIN2": "iso8859-2",
    "ISO88592": "iso8859-2",
    "LATIN3": "iso8859-3",
    "LATIN4": "iso8859-4",
    "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10",
    "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15",
    "ISO885915": "iso8859-15",
    "LATIN10": "iso8859-16",
    "ISO88595": "iso8859-5",
    "ISO88596": "iso8859-6",
    "ISO88597": "iso8859-7",
    "ISO88598": "iso8859-8",
    "WIN1250": "cp1250",
    "WIN1251": "cp1251",
    "WIN": "cp1251",
    "WIN1252": "cp1252",
    "WIN1253": "cp1253",
    "WIN1254": "cp1254",
    "WIN1255": "cp1255",
    "WIN1256": "cp1256",
    "WIN1257": "cp1257",
    "WIN1258": "cp1258",
    "WIN866": "cp866",
    "WIN874": "cp874",
    "KOI8": "koi8-r",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    "EUCJP": "euc_jp",
    "EUCJIS2004": "euc_jis_2004",
    "SHIFTJIS2004": "shift_jis_2004",
    "SJIS": "cp932",
    "SHIFTJIS": "cp932",
    "WIN932": "cp932",
    "WINDOWS932": "cp932",
    "MSKANJI": "cp932",
    "EUCKR": "euc_kr",
    "UHC": "cp949",
    "WIN949": "cp949",
    "JOHAB": "johab",
    "EUCCN": "gb2312",
    "GBK": "gbk",
    "WIN936": "gbk",
    "GB18030": "gb18030",
    "BIG5": "big5",
    "WIN950": "big5",
}


def codec_of(encoding: str) -> str:
    """Python's codec for a PostgreSQL encoding name, "" when it is not known."""
    return CODECS.get("".join(c for c in encoding.upper() if c.isalnum()), "")
