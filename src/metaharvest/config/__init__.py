"""Settings, secret references, trusted certificate authorities, and the places of files."""
