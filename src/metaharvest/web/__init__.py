"""The web server: it publishes the catalogue, and serves the console and the API. It never harvests."""
