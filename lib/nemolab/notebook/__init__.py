"""What notebooks import: params, results, show, progress, replay."""
