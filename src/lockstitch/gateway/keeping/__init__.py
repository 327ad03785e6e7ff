"""What is kept: exchanges and conversations, as facts in a store, and back."""
