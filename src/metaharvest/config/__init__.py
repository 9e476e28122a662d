"""Settings, secret references, trusted certificate authorities, the places of files, and the names of targets."""
