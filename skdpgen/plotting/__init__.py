"""Pictures, as scikit-learn displays: the only place that imports matplotlib."""
