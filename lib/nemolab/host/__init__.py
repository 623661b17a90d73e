"""Facts about the host, and what a profile requires of it."""
