"""Pictures that the package draws itself: coloured shapes, with captions, boxes and questions that are true of them."""
