"""The life of a finding over the nights: new, still there, or fixed."""
