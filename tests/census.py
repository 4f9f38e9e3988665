"""Made-up persons in the shape of the UCI Adult table, where that is not at hand: as many rows, and roughly its shares.

What tests ask of the census is compared with the truth in the same file, so either will do.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

ROWS = 32_561
FROM_FORTY_ON = 14_237
_SHARES: dict[str, dict[str, int]] = {
    "work_class": {"Private": 697, "Self-emp-not-inc": 78, "Local-gov": 64, "?": 56, "State-gov": 40,
                   "Self-emp-inc": 34, "Federal-gov": 29, "Without-pay": 1, "Never-worked": 1},
    "marital_status": {"Married-civ-spouse": 460, "Never-married": 328, "Divorced": 136, "Separated": 31,
                       "Widowed": 30, "Married-spouse-absent": 13, "Married-AF-spouse": 1},
    "occupation": {"Prof-specialty": 127, "Craft-repair": 126, "Exec-managerial": 125, "Adm-clerical": 116,
                   "Sales": 112, "Other-service": 101, "Machine-op-inspct": 61, "?": 57, "Transport-moving": 49,
                   "Handlers-cleaners": 42, "Farming-fishing": 31, "Tech-support": 29, "Protective-serv": 20,
                   "Priv-house-serv": 5, "Armed-Forces": 1},
    "relationship": {"Husband": 405, "Not-in-family": 255, "Own-child": 156, "Unmarried": 106, "Wife": 48,
                     "Other-relative": 30},
    "race": {"White": 854, "Black": 96, "Asian-Pac-Islander": 32, "Amer-Indian-Eskimo": 10, "Other": 8},
    "sex": {"Male": 669, "Female": 331},
    "native_country": {"United-States": 896, "Mexico": 20, "?": 18, "Philippines": 6, "Germany": 4, "Canada": 4,
                       "Puerto-Rico": 4, "El-Salvador": 3, "India": 3, "Cuba": 3, "England": 3, "Jamaica": 2,
                       "South": 2, "China": 2, "Italy": 2, "Laos": 1, "Peru": 1, "Greece": 1},
}  # fmt: skip
#: Each with its number in the table, and its share in thousandths.
_EDUCATION = (
    ("Preschool", 2), ("1st-4th", 5), ("5th-6th", 10), ("7th-8th", 20), ("9th", 16), ("10th", 29), ("11th", 36),
    ("12th", 13), ("HS-grad", 323), ("Some-college", 224), ("Assoc-voc", 42), ("Assoc-acdm", 33), ("Bachelors", 164),
    ("Masters", 53), ("Prof-school", 18), ("Doctorate", 13),
)  # fmt: skip
COLUMNS = ("age", "work_class", "final_weight", "education", "education_num", "marital_status", "occupation",
           "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country",
           "class")  # fmt: skip


def write_census(path: Path) -> Path:
    """The same rows each time. One person is from Holand-Netherlands, as in the original."""
    rng = random.Random(1994)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number in range(ROWS):
            row = _person(rng)
            row["native_country"] = "Holand-Netherlands" if number == 0 else row["native_country"]
            row["age"] = _age(number, rng)
            writer.writerow([row[c] for c in COLUMNS])
    return path


def _age(number: int, rng: random.Random) -> int:
    """From 17 to 90; as many from 40 on as in the original."""
    if number < 2:
        return (17, 90)[number]
    return min(90, 40 + round(rng.expovariate(0.08))) if number <= FROM_FORTY_ON else rng.randint(17, 39)


def _person(rng: random.Random) -> dict[str, object]:
    row: dict[str, object] = {c: rng.choices(list(s), list(s.values()))[0] for c, s in _SHARES.items()}
    level = rng.choices(range(len(_EDUCATION)), [share for _, share in _EDUCATION])[0]
    is_rich = rng.random() < 0.05 + 0.02 * level
    gain = rng.choice((3103, 7298, 7688, 15024, 99999)) if rng.random() < (0.2 if is_rich else 0.04) else 0
    return {
        **row, "final_weight": rng.randint(12_285, 400_000), "education": _EDUCATION[level][0],
        "education_num": level + 1, "capital_gain": gain, "capital_loss": 1902 if rng.random() < 0.047 else 0,
        "hours_per_week": 40 if rng.random() < 0.47 else rng.randint(1, 99), "class": ">50K" if is_rich else "<=50K",
    }  # fmt: skip
