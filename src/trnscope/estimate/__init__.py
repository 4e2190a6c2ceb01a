"""What a step of a script would take on a Trainium instance, without the chip."""
