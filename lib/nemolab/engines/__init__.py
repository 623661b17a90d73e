"""One module an engine: how a profile becomes a launch, and how a process is run, watched and stopped."""
