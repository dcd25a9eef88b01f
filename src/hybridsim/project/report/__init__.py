"""Results of a fit: scores, figures, predictions, the summary page."""
