"""The site of the documentation: its pages, the pictures of its gallery, and its picture of the rooms."""
