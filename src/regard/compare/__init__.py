"""Train the same thing in several ways and set the results side by side, with the spread that chance gives them."""
