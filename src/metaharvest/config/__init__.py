"""Settings, secret references, trusted certificates, the places of files, and the values that all reports share."""
