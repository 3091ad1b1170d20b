"""The catalog: supervised connections to servers, what the servers list, and the names under which clients call it."""
