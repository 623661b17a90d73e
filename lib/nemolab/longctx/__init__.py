"""Long-context suites: exact prompts, tasks, scoring, statistics, failure classes."""
