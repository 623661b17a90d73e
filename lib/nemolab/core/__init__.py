"""What every other package rests on: errors, findings, files, statuses, parameters and results."""
