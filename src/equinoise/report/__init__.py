"""What a person looks at: figures, in one style."""
