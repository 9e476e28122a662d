"""Settings, secret references, trusted certificate authorities, and where files are."""
