"""Results of a fit: scores, figures, predictions, summary page."""
