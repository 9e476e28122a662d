"""What several tests share: servers on loopback that serve, record and misbehave."""
