"""Studies of publications, each on the skeleton `study.Study`, and the demo."""
