"""The characters of Chinese, Japanese and Korean, which say more than a letter each."""

from __future__ import annotations

import re

LETTER = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
"""Kana, Han characters and Hangul."""

CHARACTER = re.compile("[\u2e80-\ud7af]")
"""Letters, radicals, punctuation and marks."""
