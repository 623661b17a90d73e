"""What runs notebooks: spec, runner, record, report, diff, sign-off."""
