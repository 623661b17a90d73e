"""How each engine's command line is spelled: one module an engine, each with `command(profile, place) -> Command`."""
