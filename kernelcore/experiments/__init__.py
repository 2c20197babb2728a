"""Studies that reproduce publications, each a subclass of `study.Study`, and the demo."""
