"""Contract suites and fakes for users and third-party back ends."""
