"""Speed against named peers, as ratios of one run. Not part of the suite."""
