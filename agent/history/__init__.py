"""What a conversation must look like before it is sent to a model."""
