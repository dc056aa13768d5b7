"""Sentences of our own with numbers, money, addresses and punctuation in them."""

from __future__ import annotations

TEXTS = [
    "The river, which is 120 km long, and their villages (about 40) lie in the north.",
    "In 1990 the council paid $5,000 and the mill was sold; which of them knew?",
    "Write to someone@example.org or see www.example.org, where the lists and their dates are.",
    "Their songs and dances, which the old teach the young, are played on 12 March.",
    "And so it was that the miller — at 10:30 — lost the key, and with it the mill.",
    "A short one.",
    "The three sisters and the two brothers divided 1,250 acres, 3 barns and the house among them.",
    "Which of the maps shows the roads of 1850s towns, their bridges and the ferries?",
]
