"""Entity disambiguation: find the entity of a mention among the candidates of its alias."""
