"""Words that tasks draw from, where `nemolab.miniature.wording` has none of the kind. All of them our own."""

from __future__ import annotations

_NAMES = """
Alma Bruno Clara Dario Elena Felix Greta Hugo Irene Jonas Karla Lukas Marta Nils Olga Pedro Rosa Sven Tilda Ursula
Viktor Wanda Yannick Zelda
"""
_PLACES = """
kitchen garden cellar attic library office garage hallway bathroom bedroom balcony workshop stable greenhouse chapel
bakery
"""
_THINGS = "lamp ball book key coat basket hammer violin kettle ladder mirror candle umbrella suitcase telescope blanket"
NAMES = tuple(_NAMES.split())
PLACES = tuple(_PLACES.split())
THINGS = tuple(_THINGS.split())

# What somebody does, and a question that means it and shares no content word with it.
ASSOCIATIONS: tuple[tuple[str, str], ...] = (
    ("tunes pianos for a living", "Who works with musical instruments?"),
    ("kneads dough every morning before sunrise", "Who makes bread?"),
    ("repairs sails down at the quay", "Who has to do with boats?"),
    ("keeps forty hives behind the barn", "Who could sell honey?"),
    ("pulls teeth and fills cavities", "Who is a dentist?"),
    ("cuts hair in a small salon", "Who is a barber?"),
    ("drives sheep across the high pastures", "Who is a shepherd?"),
    ("grinds lenses for the short-sighted", "Who helps people to see better?"),
    ("stitches wounds on the night shift", "Who works in a hospital?"),
    ("measures the distance to quasars", "Who studies the sky?"),
    ("writes verdicts after long hearings", "Who is a judge?"),
    ("lays bricks in neat rows", "Who builds walls?"),
    ("sorts letters by postcode", "Who is employed by the mail?"),
    ("plants saplings on bare slopes", "Who looks after forests?"),
    ("translates Finnish novels into Greek", "Who knows several languages?"),
    ("shoes horses at the old forge", "Who is a blacksmith?"),
    ("prescribes drops for coughing children", "Who is a doctor?"),
    ("paints portraits of strangers", "Who is an artist?"),
    ("audits the books of three banks", "Who deals with accounts?"),
    ("flies freight to Anchorage twice a week", "Who is a pilot?"),
    ("teaches fractions to nine-year-olds", "Who explains mathematics?"),
    ("digs up amphorae near Corinth", "Who is an archaeologist?"),
    ("tends the beam that warns ships off the rocks", "Who runs a lighthouse?"),
    ("brews stout in copper kettles", "Who makes beer?"),
)
