"""Entity disambiguation: the entity that a mention means, among the candidates of its alias."""
